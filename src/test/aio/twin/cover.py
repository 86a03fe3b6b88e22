"""Which scenarios to play: a covering array of all pairs of values, and random ones after that; and which pairs were."""
import itertools
import random
import re

from allpairspy import AllPairs

from dimensions import DIMENSIONS, DRAWN, THEMES, impossible


def possible(values, rng=None):
    """These values, or other ones (plain, or by chance) for those with which nothing could be seen of an earlier dimension's."""
    values = {name: values[name] for name in DIMENSIONS}
    for _ in DIMENSIONS:
        before = dict(values)
        for one, other in itertools.combinations(DIMENSIONS, 2):
            if impossible({one: values[one], other: values[other]}):
                make_possible(values, one, other, rng)
        # what is another one now may make no sense with what had been looked at
        if values == before:
            break
    return values


def make_possible(values, one, other, rng):
    """Change one of two values that make no sense together."""
    choices = [choice for choice in DIMENSIONS[other] if rng and not impossible({one: values[one], other: choice})]
    if choices:
        values[other] = rng.choice(choices)
        return
    plain = next(iter(DIMENSIONS[other]))
    # or of this one, if what is plain for the other makes no sense with it, either
    if values[other] == plain or impossible({one: values[one], other: plain}):
        values[one] = next(iter(DIMENSIONS[one]))
    else:
        values[other] = plain


def pairs():
    """All pairs of values that a scenario may have."""
    for one, other in itertools.combinations(DIMENSIONS, 2):
        for first, second in itertools.product(DIMENSIONS[one], DIMENSIONS[other]):
            if not impossible({one: first, other: second}):
                yield (one, first), (other, second)


def covering(seed):
    """Values of scenarios that have all pairs among them, in random order of dimensions and values."""
    rng, coverage = random.Random(seed), Coverage()
    names = list(DIMENSIONS)
    rng.shuffle(names)
    choices = [rng.sample(list(DIMENSIONS[name]), len(DIMENSIONS[name])) for name in names]
    for row in AllPairs(choices):
        values = possible(dict(zip(names, row)))
        coverage.add(values)
        yield values
    # pairs that were in rows with something impossible
    for pair in sorted(map(sorted, coverage.missing())):
        if frozenset(pair) not in coverage.seen:
            values = possible({**anything(rng), **dict(pair)})
            coverage.add(values)
            yield values


def anything(rng):
    """Values at random, some or most of them plain: what goes wrong in the rest is not hidden by what fails first.

    Half of them have a theme, whose dimensions vary, while others hardly do.
    """
    plain, kinds = rng.random() * 0.9, None
    is_plain = dict.fromkeys(DIMENSIONS, plain)
    if rng.random() < 0.5:
        theme = rng.choice(list(THEMES))
        names, kinds = THEMES[theme]
        is_plain = {name: 0.3 if name in names else 0.93 for name in DIMENSIONS}
    values = {name: draw(name, rng, is_plain[name]) for name in DIMENSIONS}
    if kinds:
        values['kind'] = rng.choice([kind for kind in DIMENSIONS['kind'] if re.match(kinds, kind)])
        if theme == 'apply':
            values['place'] = 'subscriber'
    # by chance first, and what then makes no sense is plain
    return possible(possible(values, rng))


def draw(name, rng, is_plain):
    """A value of a dimension, which is the plain one with this probability, if it is not always drawn."""
    choices = list(DIMENSIONS[name])
    if name in DRAWN:
        weights = DRAWN[name]
        return rng.choices(choices, [weights[choice] for choice in choices] if weights else None)[0]
    return choices[0] if rng.random() < is_plain else rng.choice(choices)


def with_(only, rng, is_plain):
    """These values, with others at random, or with plain ones."""
    values = {name: next(iter(choices)) for name, choices in DIMENSIONS.items()}
    while True:
        # values that make no sense with these are drawn again
        drawn = possible({**(values if is_plain else anything(rng)), **only}, rng)
        if all(drawn[name] == value for name, value in only.items()):
            return drawn
        if is_plain:
            return {**values, **only}


class Coverage:
    def __init__(self):
        self.all = {frozenset(pair) for pair in pairs()}
        self.seen = set()

    def add(self, values):
        self.seen.update(frozenset(pair) for pair in itertools.combinations(values.items(), 2))

    def missing(self):
        return self.all - self.seen
