/*-------------------------------------------------------------------------
 *
 * backup_manifest_internals.c
 *	  Included at the end of backup/backup_manifest.c: the manifest of a base
 *	  backup that several connections send.
 *
 * Each connection but the leader's has a manifest of its own, of which only
 * the entries of files are kept, in a file that the leader can read.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "backup_internal.h"

/* The name of a connection's part, in the set of files. */
static void
name_part(char *name, int number)
{
	snprintf(name, MAXPGPATH, "manifest.%d", number);
}

/* A manifest has been begun: keep only what comes from now on, in this set. */
void
AioManifestToFileSet(backup_manifest_info *manifest, FileSet *fileset,
					 int number)
{
	char		name[MAXPGPATH];

	if (!IsManifestEnabled(manifest))
		return;
	name_part(name, number);
	BufFileClose(manifest->buffile);
	manifest->buffile = BufFileCreateFileSet(fileset, name);
}

/* It is complete, and the leader can read it. */
void
AioExportManifest(backup_manifest_info *manifest)
{
	if (!IsManifestEnabled(manifest))
		return;
	BufFileExportFileSet(manifest->buffile);
	BufFileClose(manifest->buffile);
	manifest->buffile = NULL;
}

/* Append the entries of another connection. */
void
AioAppendManifest(backup_manifest_info *manifest, FileSet *fileset,
				  int number)
{
	char		name[MAXPGPATH];
	char		piece[BLCKSZ + 1];
	BufFile    *part;
	size_t		length;
	bool		is_first = true;

	if (!IsManifestEnabled(manifest))
		return;
	name_part(name, number);
	part = BufFileOpenFileSet(fileset, name, O_RDONLY, false);
	while ((length = BufFileRead(part, piece, BLCKSZ)) > 0)
	{
		piece[length] = '\0';

		/* the entry before is terminated by the one that follows it */
		if (is_first && !manifest->first_file)
			AppendStringToManifest(manifest, ",");
		is_first = manifest->first_file = false;
		AppendStringToManifest(manifest, piece);
	}
	BufFileClose(part);
}
