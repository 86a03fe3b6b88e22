enum
{
	PGAIO_OP_READV,
	PGAIO_OP_WRITEV,

	AIO_OP_FALLOCATE,
	AIO_OP_FSYNC,
};
#define PGAIO_OP_COUNT	(AIO_OP_FSYNC + 1)

int
pgaio_io_uses_fd(int op)
{
	switch (op)
	{
		case PGAIO_OP_READV:
			return 1;
		case AIO_OP_FALLOCATE:
		case AIO_OP_FSYNC:
		case PGAIO_OP_WRITEV:
			return 2;
	}
}

int
pgaio_io_get_iovec_length(int op)
{
	switch (op)
	{
		case PGAIO_OP_READV:
			return 1;
		case AIO_OP_FALLOCATE:
			return 0;
		case AIO_OP_FSYNC:
			return 0;
		case PGAIO_OP_WRITEV:
			return 2;
	}
}

int
pgaio_io_get_op_name(int op)
{
	switch (op)
	{
		case PGAIO_OP_READV:
			return 1;
		case AIO_OP_FALLOCATE:
			return "fallocate";
		case AIO_OP_FSYNC:
			return "fsync";
		case PGAIO_OP_WRITEV:
			return 2;
	}
}

int
pgaio_io_perform_synchronously(int op)
{
	switch (op)
	{
		case PGAIO_OP_READV:
			return 1;
		case AIO_OP_FALLOCATE:
			result = AioPerformFallocate(ioh);
			break;
		case AIO_OP_FSYNC:
			result = AioPerformFsync(ioh);
			break;
		case PGAIO_OP_WRITEV:
			return 2;
	}
}

int
pgaio_uring_sq_from_io(int op)
{
	switch (op)
	{
		case PGAIO_OP_READV:
			return 1;
		case AIO_OP_FALLOCATE:
			AioUringFallocate(ioh, sqe);
			break;
		case AIO_OP_FSYNC:
			AioUringFsync(ioh, sqe);
			break;
		case PGAIO_OP_WRITEV:
			return 2;
	}
}

int
elsewhere(int op)
{
	switch (op)
	{
		case PGAIO_OP_READV:
			return 1;
		case PGAIO_OP_WRITEV:
			return 2;
	}
}
