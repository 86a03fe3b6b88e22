/*-------------------------------------------------------------------------
 *
 * walsender.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_WALSENDER_H
#define SIMULATE_WALSENDER_H

extern int	max_wal_senders;

extern void WalSndWakeup(bool physical, bool logical);
extern void WalSndWakeupRequest(void);
extern void WalSndWakeupProcessRequests(bool physical, bool logical);

#endif							/* SIMULATE_WALSENDER_H */
