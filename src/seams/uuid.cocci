// Two hexadecimal digits of a UUID are converted without strtoul().
//
// What: string_to_uuid() asks us for the value of two digits.
// Without it: a third of the processor time of a COPY of UUIDs, as text, goes into sixteen calls for each.
// Could disappear: when upstream converts them itself.
//
// target: src/backend/utils/adt/uuid.c strtoul-1 AioHexByte+1 NULL-1
//   in string_to_uuid

@@
expression digits;
symbol NULL;
@@
- strtoul(digits, NULL, 16)
+ AioHexByte(digits)
