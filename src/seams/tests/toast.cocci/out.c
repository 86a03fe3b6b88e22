void
heap_fetch_toast_slice(Relation toastrel, Oid valueid)
{
	while ((ttup = AioNextChunk(toastscan, ForwardScanDirection)) != NULL)
	{
		expectedchunk++;
	}
}

void
other(Relation toastrel)
{
	ttup = systable_getnext_ordered(toastscan, ForwardScanDirection);
}
