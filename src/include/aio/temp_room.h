/*-------------------------------------------------------------------------
 *
 * temp_room.h
 *	  Room in temporary files, and elsewhere.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_TEMP_ROOM_H
#define AIO_TEMP_ROOM_H

/* fd_internals.c, at the end of upstream's fd.c */
extern uint64 AioTempBytes(void);

/* temp_room.c */
extern bool AioTempHasRoom(uint64 bytes);
extern bool AioFileHasRoom(int fd, uint64 bytes);

#endif							/* AIO_TEMP_ROOM_H */
