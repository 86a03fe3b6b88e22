void
heap_fetch_toast_slice(Relation toastrel, Oid valueid)
{
	while ((ttup = systable_getnext_ordered(toastscan, ForwardScanDirection)) != NULL)
	{
		expectedchunk++;
	}
}

void
other(Relation toastrel)
{
	ttup = systable_getnext_ordered(toastscan, ForwardScanDirection);
}
