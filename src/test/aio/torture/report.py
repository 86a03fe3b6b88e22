"""What a run was: rounds by fault and method, what was checked, what failed."""
import collections

from cluster import Cluster
from pages import Pages


class Report:
    def __init__(self):
        self.rounds = collections.Counter()     # (fault, method)
        self.failures = []                      # (round, what, the command that repeats it)
        self.skipped = collections.Counter()    # why
        self.crashes = self.power_losses = self.volatile = 0
        self.fresh = self.compared = self.indexes = self.lookups = self.statements = 0
        self.complete = self.twice = 0
        self.backups = self.backups_incremental = self.backups_failed = 0
        self.subscribed = self.followed = self.companions_crashed = self.replicated = self.applied_ahead = 0

    def add(self, plan, result):
        self.rounds[plan.fault, plan.method] += 1
        self.subscribed += plan.epoch.companion == 'subscriber'
        self.followed += plan.epoch.companion == 'standby'
        for name in ('fresh', 'compared', 'indexes', 'lookups'):
            setattr(self, name, getattr(self, name) + getattr(result, name))

    def table(self):
        methods = sorted({method for _, method in self.rounds})
        lines = [[fault, *(self.rounds[fault, method] for method in methods),
                  sum(self.rounds[fault, method] for method in methods)]
                 for fault in sorted({fault for fault, _ in self.rounds})]
        lines.append(['all', *(sum(n for (_, m), n in self.rounds.items() if m == method) for method in methods),
                      self.rounds.total()])
        yield '{:<24}'.format('rounds') + ''.join(f'{method:>10}' for method in [*methods, 'all'])
        for name, *numbers in lines:
            yield f'{name:<24}' + ''.join(f'{number or "-":>10}' for number in numbers)

    def print(self, seconds):
        print()
        for line in self.table():
            print(line)
        print()
        rounds = self.rounds.total()
        for label, number in (
                ('crashes', self.crashes), ('power losses', self.power_losses),
                ('  with them lost, pieces of files', self.volatile), ('statements', self.statements),
                ('queries with and without lookups ahead', self.twice),
                ('acknowledged rows checked', self.fresh), ('all rows compared', self.compared),
                ('index checks', self.indexes), ('keys looked up', self.lookups),
                ('clusters checked by pg_amcheck', self.complete),
                ('clusters whose checksums were verified', Pages.checked),
                ('rounds with a subscriber', self.subscribed), ('  steps of lookups for changes to apply', self.applied_ahead),
                ('rounds with a standby from the beginning', self.followed),
                ('crashes of subscribers and standbys', self.companions_crashed),
                ('rows compared with theirs', self.replicated),
                ('backups taken beside a load', self.backups), ('  incremental ones', self.backups_incremental),
                ('backups that failed', self.backups_failed),
                ('starts and stops that needed help', Cluster.ways)):
            print(f'{label:<40}{number:>11,}')
        print(f'{"seconds":<40}{seconds:>11,.0f}' + (f'   {seconds / rounds:.1f} a round' if rounds else ''))
        for why, number in self.skipped.items():
            print(f'skipped {number}: {why}')
        for number, what, command in self.failures:
            print(f'FAILED round {number}: {what}\n    {command}')
        print(f'{"failures":<40}{len(self.failures):>11}', flush=True)
