/*-------------------------------------------------------------------------
 *
 * built_in_ams.h
 *	  PostgreSQL's own access methods: the functions that their AioIndexAmOps
 *	  consist of.  Private to src/backend/executor.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BUILT_IN_AMS_H
#define AIO_BUILT_IN_AMS_H

#include "aio/index_am.h"
#include "utils/geo_decls.h"

/* btree_am.c, and so on */
extern void AioRegisterBtree(void);
extern void AioRegisterHash(void);
extern void AioRegisterGin(void);
extern void AioRegisterGist(void);
extern void AioRegisterSpgist(void);
extern void AioRegisterBrin(void);

/* btree_read.c, hash_read.c: bring in what the insert will need */
extern void AioBtreeWatchPage(void *event, void *arg);
extern void AioBtreeReadAhead(AioIndexEntry *entry);
extern void AioHashReadAhead(AioIndexEntry *entry);

/* entry_sort.c */
extern AioEntry *AioSortBtree(AioIndexBatch *batch);
extern bool AioBtreeInOrder(AioIndexBatch *batch);
extern bool AioGistHasOrder(const AioIndexBatch *batch);
extern AioEntry *AioSortGist(AioIndexBatch *batch);

/* geometry.c */
extern bool AioBoxIsOrdinary(const BOX *box);
extern bool AioCanPlace(AioIndexBatch *batch, const Datum *values,
						const bool *isnull,
						bool (*root_is_ordinary) (Relation index));
extern bool AioOpclassIsBuiltIn(Relation index, int column);

/* btree_drain.c, hash_drain.c */
extern void AioDrainBtree(AioIndexBatch *batch, AioEntry *entries,
						  AioScope *scope);
extern double AioBtreeSpread(AioIndexBatch *batch);
extern AioEntry *AioSortBuckets(AioIndexBatch *batch);
extern void AioDrainHash(AioIndexBatch *batch, AioEntry *entries,
						 AioScope *scope);

/* gist_drain.c */
extern bool AioCollectGist(AioIndexBatch *batch, const AioIndexRow *row,
						   const Datum *values, const bool *isnull);
extern void AioDrainGist(AioIndexBatch *batch, AioEntry *entries,
						 AioScope *scope);
extern void AioForgetGist(AioIndexBatch *batch);

/* gin_drain.c */
extern bool AioCollectGin(AioIndexBatch *batch, const AioIndexRow *row,
						  const Datum *values, const bool *isnull);
extern void AioDrainGin(AioIndexBatch *batch, AioEntry *entries,
						AioScope *scope);
extern void AioFreeGin(AioIndexBatch *batch);

#endif							/* AIO_BUILT_IN_AMS_H */
