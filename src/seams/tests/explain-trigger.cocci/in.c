static void
report_triggers(Table *rInfo, State *es)
{
	void	   *trig;
	void	   *instr;

	while ((trig = next(rInfo, &instr)) != NULL)
	{
		open(es);
		ExplainCloseGroup("Trigger", NULL, true, es);
	}
}

static void
other(State *es)
{
	ExplainCloseGroup("Trigger", NULL, true, es);
}
