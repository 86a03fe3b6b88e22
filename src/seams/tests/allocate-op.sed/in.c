enum
{
	PGAIO_OP_READV,
	PGAIO_OP_WRITEV,
};
#define PGAIO_OP_COUNT	(PGAIO_OP_WRITEV + 1)

int
pgaio_io_uses_fd(int op)
{
	switch (op)
	{
		case PGAIO_OP_READV:
			return 1;
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
