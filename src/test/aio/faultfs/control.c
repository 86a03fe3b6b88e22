/*-------------------------------------------------------------------------
 *
 * control.c
 *	  Commands on a socket.
 *
 * The socket is HIDDEN/control in the directory below, of mode 0600.  A line
 * is a command, which README.md explains; it gets one line as an answer, which
 * begins with OK or ERROR.  Commands are carried out one at a time, by one
 * thread.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "faultfs.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MAX_CLIENTS		16
#define MAX_LINE		1024
#define MAX_WORDS		24

typedef struct Client
{
	int			fd;
	size_t		length;
	bool		too_long;
	char		line[MAX_LINE];
} Client;

typedef struct Command
{
	const char *name;
	const char *(*execute) (char **words, int count, FILE *answer);
	bool		changes;		/* and needs power */
} Command;

static int	listener;
static pthread_t thread;

/* ------------------------------------------------------------------------
 * Commands: each returns what is wrong, or NULL, and may add to the answer
 * ------------------------------------------------------------------------
 */

static const char *
make_rule(char **words, int count, FILE *answer)
{
	int			id;
	const char *complaint = rule_add(words, count, &id);

	if (complaint == NULL)
		fprintf(answer, " %d", id);
	return complaint;
}

static const char *
remove_rules(char **words, int count, FILE *answer)
{
	uint64_t	id;

	if (count != 2)
		return "the number of a rule is expected, or all";
	if (strcmp(words[1], "all") == 0)
		rules_clear();
	else if (!parse_number(words[1], INT_MAX, &id) || !rule_remove(id))
		return "there is no such rule";
	return NULL;
}

static const char *
show_rules(char **words, int count, FILE *answer)
{
	if (count != 1)
		return "no parameter is expected";
	rules_describe(answer);
	return NULL;
}

static const char *
set_quota(char **words, int count, FILE *answer)
{
	uint64_t	bytes = UINT64_MAX;

	if (count != 2 || (strcmp(words[1], "none") != 0 &&
					   !parse_number(words[1], INT64_MAX, &bytes)))
		return "a number of bytes is expected, or none";
	quota_set(bytes);
	return NULL;
}

static const char *
set_seed(char **words, int count, FILE *answer)
{
	uint64_t	seed;

	if (count != 2 || !parse_number(words[1], UINT64_MAX, &seed))
		return "a number is expected";
	settings.seed = seed;
	rules_restart();
	return NULL;
}

static const char *
show_status(char **words, int count, FILE *answer)
{
	uint64_t	trash;
	uint64_t	changes = names_volatile(&trash);
	uint64_t	files;
	uint64_t	bytes = data_volatile(&files);

	if (count != 1)
		return "no parameter is expected";
	fprintf(answer, " pid=%d power=%s metadata=%s seed=%llu", getpid(),
			power_is_lost() ? "lost" : "on",
			settings.strict ? "strict" : "ordered",
			(unsigned long long) settings.seed);
	rules_count(answer);
	fprintf(answer, " volatile_bytes=%llu volatile_files=%llu"
			" volatile_changes=%llu trash_bytes=%llu used=%llu",
			(unsigned long long) bytes, (unsigned long long) files,
			(unsigned long long) changes, (unsigned long long) trash,
			(unsigned long long) quota_used());
	if (quota_limit() == UINT64_MAX)
		fprintf(answer, " quota=none");
	else
		fprintf(answer, " quota=%llu", (unsigned long long) quota_limit());
	return NULL;
}

static const char *
sync_all(char **words, int count, FILE *answer)
{
	if (count != 1)
		return "no parameter is expected";
	power_sync();
	return NULL;
}

static const char *
lose_power(char **words, int count, FILE *answer)
{
	static char complaint[128];
	Loss		loss = {.torn = 1,.keep = 0.5};
	const char *torn = NULL;
	const char *keep = NULL;

	for (int i = 1; i < count; i++)
	{
		if (strncmp(words[i], "torn=", 5) == 0 && torn == NULL)
			torn = words[i] + 5;
		else if (strncmp(words[i], "keep=", 5) == 0 && keep == NULL)
			keep = words[i] + 5;
		else
			return "only torn and keep are expected, once";
	}
	if (torn != NULL && strcmp(torn, "4096") == 0)
		loss.torn = 4096 / SECTOR;
	else if (torn != NULL && strcmp(torn, "none") == 0)
		loss.torn = 0;
	else if (torn != NULL && strcmp(torn, "512") != 0)
		return "torn is 512, 4096 or none";
	if (keep != NULL && !parse_decimal(keep, 1, &loss.keep))
		return "keep is a probability";
	power_lose(&loss);
	fprintf(answer, " changes=%llu undone=%llu files=%llu units=%llu lost=%llu",
			(unsigned long long) loss.changes, (unsigned long long) loss.undone,
			(unsigned long long) loss.files, (unsigned long long) loss.units,
			(unsigned long long) loss.lost);
	if (loss.error == 0)
		return NULL;
	snprintf(complaint, sizeof(complaint),
			 "power is lost, and what is left is wrong: %s",
			 strerror(loss.error));
	return complaint;
}

static const Command commands[] = {
	{"delay", make_rule, true},
	{"stall", make_rule, true},
	{"error", make_rule, true},
	{"short", make_rule, true},
	{"remove", remove_rules, true},
	{"rules", show_rules, false},
	{"quota", set_quota, true},
	{"seed", set_seed, true},
	{"status", show_status, false},
	{"sync", sync_all, true},
	{"power-loss", lose_power, true},
};

/* ------------------------------------------------------------------------
 * Lines
 * ------------------------------------------------------------------------
 */

static const char *
execute(char *line, FILE *answer)
{
	char	   *words[MAX_WORDS];
	int			count = 0;
	char	   *rest;

	for (const char *c = line; *c != '\0'; c++)
	{
		if (*c < ' ' || *c > '~')
			return "only printable ASCII is expected";
	}
	for (char *word = strtok_r(line, " ", &rest); word != NULL;
		 word = strtok_r(NULL, " ", &rest))
	{
		if (count == MAX_WORDS)
			return "there are too many words";
		words[count++] = word;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
	{
		if (count == 0 || strcmp(words[0], commands[i].name) != 0)
			continue;
		if (commands[i].changes && power_is_lost())
			return "power is lost";
		return commands[i].execute(words, count, answer);
	}
	return "there is no such command";
}

/* Carry out a line; false if its sender does not take the answer. */
static bool
answer_line(Client *client, size_t length)
{
	char	   *details = NULL;
	size_t		size = 0;
	FILE	   *stream = open_memstream(&details, &size);
	const char *complaint;
	char	   *answer;
	int			answer_length;
	bool		sent;

	if (stream == NULL)
		return false;
	client->line[length] = '\0';
	complaint = client->too_long ? "the line is too long" :
		strlen(client->line) != length ? "only printable ASCII is expected" :
		execute(client->line, stream);
	fclose(stream);
	answer_length = complaint != NULL ?
		asprintf(&answer, "ERROR %s\n", complaint) :
		asprintf(&answer, "OK%s\n", details);
	free(details);
	if (answer_length < 0)
		return false;
	sent = send(client->fd, answer, answer_length, MSG_NOSIGNAL | MSG_DONTWAIT) ==
		answer_length;
	free(answer);
	return sent;
}

/* Read what has come; false if no more will. */
static bool
serve(Client *client)
{
	ssize_t		length = recv(client->fd, client->line + client->length,
							  MAX_LINE - client->length, MSG_DONTWAIT);
	char	   *end;

	if (length <= 0)
		return length < 0 && (errno == EAGAIN || errno == EINTR);
	client->length += length;
	while ((end = memchr(client->line, '\n', client->length)) != NULL)
	{
		size_t		taken = end - client->line + 1;

		if (!answer_line(client, taken - 1))
			return false;
		client->too_long = false;
		client->length -= taken;
		memmove(client->line, client->line + taken, client->length);
	}
	if (client->length == MAX_LINE)
	{
		client->too_long = true;
		client->length = 0;
	}
	return true;
}

static void *
run(void *argument)
{
	static Client clients[MAX_CLIENTS];
	int			nclients = 0;
	bool		listening = true;

	while (listening)
	{
		struct pollfd polled[MAX_CLIENTS + 1];
		int			fd;

		for (int i = 0; i < nclients; i++)
			polled[i] = (struct pollfd)
		{
			.fd = clients[i].fd,.events = POLLIN
		};
		polled[nclients] = (struct pollfd)
		{
			.fd = listener,.events = nclients < MAX_CLIENTS ? POLLIN : 0
		};
		if (poll(polled, nclients + 1, -1) < 0)
			continue;

		/* from the last on, as the last takes the place of one that leaves */
		fd = -1;
		if (polled[nclients].revents & POLLIN)
			fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		listening = (polled[nclients].revents & POLLHUP) == 0;
		for (int i = nclients - 1; i >= 0; i--)
		{
			if (polled[i].revents == 0 || serve(&clients[i]))
				continue;
			close(clients[i].fd);
			clients[i] = clients[--nclients];
		}
		if (fd >= 0)
		{
			clients[nclients].length = 0;
			clients[nclients].too_long = false;
			clients[nclients++].fd = fd;
		}
	}
	while (nclients > 0)
		close(clients[--nclients].fd);
	return NULL;
}

/* Only the owner may connect, from the moment on at which it is there. */
int
control_open(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t		mask = umask(0177);
	int			error = 0;

	snprintf(address.sun_path, sizeof(address.sun_path),
			 "/proc/self/fd/%d/control", hidden);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 ||
		bind(listener, (struct sockaddr *) &address, sizeof(address)) < 0 ||
		listen(listener, MAX_CLIENTS) < 0)
		error = errno;
	umask(mask);
	return error;
}

/* Signals are for the main thread. */
int
control_start(void)
{
	sigset_t	all;
	sigset_t	previous;
	int			error;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &previous);
	error = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &previous, NULL);
	return error;
}

void
control_stop(void)
{
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
}
