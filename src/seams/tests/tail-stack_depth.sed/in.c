static int n;
