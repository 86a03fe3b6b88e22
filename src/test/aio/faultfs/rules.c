/*-------------------------------------------------------------------------
 *
 * rules.c
 *	  Which requests fail, wait, or are cut short.
 *
 * A rule has an action, the operations that it concerns, a pattern of files, a
 * probability, and how many matching requests it lets pass and acts on.  Of
 * each request all rules are asked, in the order in which they were made:
 * their delays add up; of errors the first one counts, and of sizes the
 * smallest.
 *
 * Invariant: what becomes of the n-th request that matches a rule depends on
 * the seed, the rule's number and parameters, and n.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "faultfs.h"

#include <fnmatch.h>
#include <stddef.h>
#include <time.h>

#define MAX_RULES		64

/* No request is delayed for longer. */
#define MAX_DELAY		(3600 * UINT64_C(1000000))

/* While it waits, a request notices after so many us that it need not. */
#define PATIENCE		50000

/* the highest errno */
#define MAX_ERRNO		133

/* what rules draw from their streams, for each request */
enum
{
	DRAW_CHANCE,
	DRAW_DELAY,
	DRAW_SIZE,
	DRAWS
};

typedef enum Action
{
	DELAY,
	STALL,
	FAIL,
	SHORTEN,
	ACTIONS
} Action;

typedef struct Rule
{
	struct Rule *next;
	int			id;
	Action		action;
	unsigned int operations;	/* bits */
	uint64_t	latency;		/* us, as are the next two */
	uint64_t	jitter;
	uint64_t	stall;
	int			error;
	bool		lose;
	uint64_t	multiple;
	char	   *file;			/* pattern, or NULL */
	double		probability;
	uint64_t	after;
	uint64_t	count;			/* that it still acts on */
	uint64_t	matched;
	uint64_t	acted;
	uint64_t	stalled_until;	/* us */
	uint64_t	first_count;
	char	   *text;
} Rule;

/* What judges know of a request. */
typedef struct Request
{
	Operation	operation;
	unsigned int classes;		/* bits, as in Rule's operations */
	size_t		size;
	bool		shortable;
	Node	   *node;
	const char *name;
	Node	   *other;
	const char *other_name;
} Request;

static const char *const operation_names[OPERATIONS] = {
	[OP_READ] = "read",
	[OP_WRITE] = "write",
	[OP_FSYNC] = "fsync",
	[OP_FALLOCATE] = "fallocate",
	[OP_TRUNCATE] = "truncate",
	[OP_OPEN] = "open",
	[OP_CREATE] = "create",
	[OP_REMOVE] = "remove",
	[OP_RENAME] = "rename",
};

/* The syncs that are for data only are a class of their own, too. */
#define FDATASYNC	(1 << OPERATIONS)

/* What makes a disk work. */
#define DISK	(1 << OP_READ | 1 << OP_WRITE | 1 << OP_FSYNC | 1 << OP_FALLOCATE)

static const char *const action_names[ACTIONS] = {
	[DELAY] = "delay",
	[STALL] = "stall",
	[FAIL] = "error",
	[SHORTEN] = "short",
};

static pthread_mutex_t rules_lock = PTHREAD_MUTEX_INITIALIZER;
static Rule *rules;
static atomic_int nrules;
static int	last_id;

static atomic_uint_fast64_t requested[OPERATIONS];
static atomic_uint_fast64_t injected[ACTIONS];

/* ------------------------------------------------------------------------
 * Random numbers
 * ------------------------------------------------------------------------
 */

/* Each bit of the result depends on each bit of the argument. */
static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t
random_number(uint64_t stream, uint64_t number)
{
	const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);

	return mix(mix(mix(settings.seed + step) + stream * step) + number * step);
}

/* in [0, 1) */
static double
fraction(uint64_t random)
{
	return (random >> 11) / (double) (UINT64_C(1) << 53);
}

/* A number from 0 on that is below this one. */
uint64_t
dice_throw(Dice *dice, uint64_t sides)
{
	return random_number(dice->stream, dice->thrown++) % sides;
}

bool
dice_chance(Dice *dice, double probability)
{
	return fraction(random_number(dice->stream, dice->thrown++)) < probability;
}

/* ------------------------------------------------------------------------
 * Judging requests
 * ------------------------------------------------------------------------
 */

static uint64_t
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * UINT64_C(1000000) + time.tv_nsec / 1000;
}

static bool
file_matches(const Rule *rule, const Request *request)
{
	char		path[PATH_MAX];

	if (rule->file == NULL)
		return true;
	return (node_path(request->node, request->name, path, sizeof(path)) &&
			fnmatch(rule->file, path, 0) == 0) ||
		(request->other != NULL &&
		 node_path(request->other, request->other_name, path, sizeof(path)) &&
		 fnmatch(rule->file, path, 0) == 0);
}

/* Does it act on this request? */
static bool
acts(Rule *rule, const Request *request)
{
	uint64_t	number;

	if ((rule->operations & request->classes) == 0 ||
		(rule->action == SHORTEN &&
		 (!request->shortable || request->size <= rule->multiple)) ||
		!file_matches(rule, request))
		return false;
	number = rule->matched++;
	if (number < rule->after || rule->count == 0 ||
		fraction(random_number(rule->id, number * DRAWS + DRAW_CHANCE)) >=
		rule->probability)
		return false;
	rule->count -= rule->count != UINT64_MAX;
	rule->acted++;
	injected[rule->action]++;
	return true;
}

static void
apply(Rule *rule, const Request *request, Verdict *verdict)
{
	bool		acting = acts(rule, request);
	uint64_t	draw = (rule->matched - 1) * DRAWS;

	switch (rule->action)
	{
		case DELAY:
			if (acting)
				verdict->delay += rule->latency +
					random_number(rule->id, draw + DRAW_DELAY) %
					(rule->jitter + 1);
			break;
		case STALL:
			/* Once it stalls, all wait that match. */
			if (acting)
				rule->stalled_until = now() + rule->stall;
			if (rule->stalled_until != 0 &&
				(rule->operations & request->classes) &&
				file_matches(rule, request))
			{
				uint64_t	time = now();

				if (rule->stalled_until > time)
					verdict->delay += rule->stalled_until - time;
				else
					rule->stalled_until = 0;
			}
			break;
		case FAIL:
			if (acting && verdict->error == 0)
			{
				verdict->error = rule->error;
				verdict->lose = rule->lose;
			}
			break;
		case SHORTEN:
			if (acting)
			{
				uint64_t	sizes = (request->size - 1) / rule->multiple;
				size_t		size = (1 + random_number(rule->id, draw + DRAW_SIZE) %
									sizes) * rule->multiple;

				verdict->size = Min(verdict->size, size);
			}
			break;
		case ACTIONS:
			break;
	}
}

static Verdict
judge_request(Request *request)
{
	Verdict		verdict = {.size = request->size};

	requested[request->operation]++;
	request->classes |= 1 << request->operation;
	if (nrules == 0)
		return verdict;
	pthread_mutex_lock(&rules_lock);
	for (Rule *rule = rules; rule != NULL; rule = rule->next)
		apply(rule, request, &verdict);
	pthread_mutex_unlock(&rules_lock);
	return verdict;
}

/* A request for a file, which may be able to be done in part. */
Verdict
judge(Operation operation, Node *node, size_t size, bool shortable)
{
	Request		request = {0};

	request.operation = operation;
	request.node = node;
	request.size = size;
	request.shortable = shortable;
	return judge_request(&request);
}

/* A sync of a file, for data only or also for what else is known of it. */
Verdict
judge_sync(Node *node, bool datasync)
{
	Request		request = {0};

	request.operation = OP_FSYNC;
	request.classes = datasync ? FDATASYNC : 0;
	request.node = node;
	return judge_request(&request);
}

/* A request for a name in a directory, or two. */
Verdict
judge_name(Operation operation, Node *directory, const char *name,
		   Node *other, const char *other_name)
{
	Request		request = {0};

	request.operation = operation;
	request.node = directory;
	request.name = name;
	request.other = other;
	request.other_name = other_name;
	return judge_request(&request);
}

/* Wait as long as was judged; false if there is no power afterwards. */
bool
serve_delay(const Verdict *verdict)
{
	uint64_t	end = verdict->delay == 0 ? 0 : now() + verdict->delay;
	uint64_t	left = verdict->delay;

	while (left > 0 && !power_is_lost() && !fuse_session_exited(session))
	{
		uint64_t	part = Min(left, PATIENCE);
		struct timespec time = {
			.tv_sec = part / 1000000,
			.tv_nsec = part % 1000000 * 1000,
		};
		uint64_t	reached;

		nanosleep(&time, NULL);
		reached = now();
		left = reached < end ? end - reached : 0;
	}
	return !power_is_lost();
}

/* ------------------------------------------------------------------------
 * Making rules
 * ------------------------------------------------------------------------
 */

static bool
parse_operations(const char *text, unsigned int *operations)
{
	*operations = 0;
	for (;;)
	{
		size_t		length = strcspn(text, ",");
		unsigned int bits = 0;

		if (length == 4 && memcmp(text, "disk", 4) == 0)
			bits = DISK;
		else if (length == 3 && memcmp(text, "all", 3) == 0)
			bits = (1 << OPERATIONS) - 1;
		else if (length == 9 && memcmp(text, "fdatasync", 9) == 0)
			bits = FDATASYNC;
		for (int i = 0; i < OPERATIONS; i++)
		{
			if (strlen(operation_names[i]) == length &&
				memcmp(operation_names[i], text, length) == 0)
				bits = 1 << i;
		}
		if (bits == 0)
			return false;
		*operations |= bits;
		if (text[length] == '\0')
			return true;
		text	  +=length + 1;
	}
}

/* ENOSYS would tell the kernel not to ask again. */
static bool
parse_errno(const char *text, int *error)
{
	for (int i = 1; i <= MAX_ERRNO; i++)
	{
		const char *name = strerrorname_np(i);

		if (name != NULL && strcmp(name, text) == 0 && i != ENOSYS)
		{
			*error = i;
			return true;
		}
	}
	return false;
}

/* Seconds with decimals, as us. */
static bool
parse_seconds(const char *text, uint64_t *time)
{
	double		seconds;

	if (!parse_decimal(text, MAX_DELAY / 1e6, &seconds))
		return false;
	*time = seconds * 1e6 + 0.5;
	return *time > 0;
}

static bool
parse_parameter(Rule *rule, const char *name, const char *value)
{
	Action		action = rule->action;

	if (strcmp(name, "file") == 0)
	{
		free(rule->file);
		rule->file = strdup(value);
		return rule->file != NULL && *value != '\0';
	}
	if (strcmp(name, "probability") == 0)
		return parse_decimal(value, 1, &rule->probability);
	if (strcmp(name, "after") == 0)
		return parse_number(value, INT64_MAX, &rule->after);
	if (strcmp(name, "count") == 0)
		return parse_number(value, INT64_MAX, &rule->count) && rule->count > 0;
	if (strcmp(name, "latency") == 0 && action == DELAY)
		return parse_number(value, MAX_DELAY, &rule->latency);
	if (strcmp(name, "jitter") == 0 && action == DELAY)
		return parse_number(value, MAX_DELAY, &rule->jitter);
	if (strcmp(name, "seconds") == 0 && action == STALL)
		return parse_seconds(value, &rule->stall);
	if (strcmp(name, "data") == 0 && action == FAIL &&
		(rule->operations & ~(1 << OP_FSYNC | FDATASYNC)) == 0)
	{
		rule->lose = strcmp(value, "lost") == 0;
		return rule->lose || strcmp(value, "kept") == 0;
	}
	if (strcmp(name, "multiple") == 0 && action == SHORTEN)
		return parse_number(value, 1 << 20, &rule->multiple) &&
			rule->multiple > 0;
	return false;
}

static void
free_rule(Rule *rule)
{
	free(rule->file);
	free(rule->text);
	free(rule);
}

/* The words, with blanks in between. */
static char *
join(char **words, int count)
{
	size_t		length = 0;
	char	   *text;

	for (int i = 0; i < count; i++)
		length += strlen(words[i]) + 1;
	text = calloc(1, length + 1);

	for (int i = 0; i < count && text !=NULL; i++)
	{
		strcat(text, words[i]);
		if (i < count - 1)
			strcat(text, " ");
	}
	return text;
}

static const char *
parse_rule(Rule *rule, char **words, int count)
{
	int			next = 1;

	while (rule->action < ACTIONS &&
		   strcmp(words[0], action_names[rule->action]) != 0)
		rule->action++;
	if (rule->action == FAIL &&
		(next == count || !parse_errno(words[next++], &rule->error)))
		return "the name of an error is expected, such as EIO";
	if (next == count || !parse_operations(words[next++], &rule->operations))
		return "operations are expected, such as read,write";
	if (rule->action == SHORTEN &&
		(rule->operations & ~(1 << OP_READ | 1 << OP_WRITE)) != 0)
		return "only read and write can be short";

	for (int i = next; i < count; i++)
	{
		char	   *value = strchr(words[i], '=');
		size_t		length = value == NULL ? 0 : value - words[i];
		char		name[16];

		if (length == 0 || length >= sizeof(name))
			return "a parameter is expected, such as count=1";
		for (int j = next; j < i; j++)
		{
			if (strncmp(words[i], words[j], length + 1) == 0)
				return "a parameter is there twice";
		}
		memcpy(name, words[i], length);
		name[length] = '\0';
		if (!parse_parameter(rule, name, value + 1))
			return "a parameter is unknown, or its value is not possible";
	}
	if (rule->action == DELAY && rule->latency + rule->jitter == 0)
		return "latency or jitter is expected";
	if (rule->action == STALL && rule->stall == 0)
		return "seconds is expected";
	return NULL;
}

/* Make a rule; what is wrong, or NULL. */
const char *
rule_add(char **words, int count, int *id)
{
	Rule	   *rule = calloc(1, sizeof(Rule));
	Rule	  **link = &rules;
	const char *complaint;

	if (rule == NULL)
		return "no memory";
	rule->probability = 1;
	rule->count = UINT64_MAX;
	rule->multiple = SECTOR;
	complaint = parse_rule(rule, words, count);
	rule->text = join(words, count);
	rule->first_count = rule->count;
	if (complaint == NULL && nrules >= MAX_RULES)
		complaint = "there are too many rules";
	if (complaint == NULL && rule->text == NULL)
		complaint = "no memory";
	if (complaint != NULL)
	{
		free_rule(rule);
		return complaint;
	}
	pthread_mutex_lock(&rules_lock);
	*id = rule->id = ++last_id;
	while (*link != NULL)
		link = &(*link)->next;
	*link = rule;
	nrules++;
	pthread_mutex_unlock(&rules_lock);
	return NULL;
}

bool
rule_remove(int id)
{
	Rule	   *found;

	pthread_mutex_lock(&rules_lock);
	for (Rule **link = &rules;; link = &(*link)->next)
	{
		found = *link;
		if (found != NULL && found->id != id)
			continue;
		if (found != NULL)
		{
			*link = found->next;
			nrules--;
		}
		break;
	}
	pthread_mutex_unlock(&rules_lock);
	if (found != NULL)
		free_rule(found);
	return found != NULL;
}

/* Remove all rules; the next one is the first again. */
void
rules_clear(void)
{
	while (rules != NULL)
		rule_remove(rules->id);
	last_id = 0;
}

/* Begin anew to count what matches. */
void
rules_restart(void)
{
	pthread_mutex_lock(&rules_lock);
	for (Rule *rule = rules; rule != NULL; rule = rule->next)
	{
		rule->matched = rule->acted = 0;
		rule->count = rule->first_count;
	}
	pthread_mutex_unlock(&rules_lock);
}

void
rules_describe(FILE *answer)
{
	pthread_mutex_lock(&rules_lock);
	fprintf(answer, " rules=%d", nrules);
	for (Rule *rule = rules; rule != NULL; rule = rule->next)
		fprintf(answer, "; %d matched=%llu acted=%llu: %s", rule->id,
				(unsigned long long) rule->matched,
				(unsigned long long) rule->acted, rule->text);
	pthread_mutex_unlock(&rules_lock);
}

void
rules_count(FILE *answer)
{
	for (int i = 0; i < OPERATIONS; i++)
		fprintf(answer, " %s=%llu", operation_names[i],
				(unsigned long long) requested[i]);
	for (int i = 0; i < ACTIONS; i++)
		fprintf(answer, " %s_rules=%llu", action_names[i],
				(unsigned long long) injected[i]);
}
