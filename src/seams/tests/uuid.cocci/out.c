unsigned char
read_byte(const char *text)
{
	char		digits[3];

	memcpy(digits, text, 2);
	digits[2] = '\0';
	return (unsigned char) AioHexByte(digits);
}

unsigned long
read_number(const char *text, char **end)
{
	return strtoul(text, end, 16) + strtoul(text, NULL, 10);
}
