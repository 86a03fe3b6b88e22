"""Make a scenario that fails smaller: fewer values that are not plain, then fewer steps and statements."""
import dataclasses
import json

from hypothesis import HealthCheck, Phase, find, settings, strategies
from hypothesis.errors import NoSuchExample

import scenario as scenarios
from cover import possible
from dimensions import DIMENSIONS
from lockstep import Scenario, Step

# what is kept is drawn four times as often as what is left out, so that the first draws fail, too
KEEP = strategies.sampled_from([False, True, True, True, True])
HOW = settings(max_examples=60, database=None, deadline=None, derandomize=True, phases=(Phase.generate, Phase.shrink),
               suppress_health_check=list(HealthCheck))


def smallest(parts, fails):
    """The smallest selection of parts that hypothesis finds to fail."""
    def chosen(keep):
        return [part for part, kept in zip(parts, keep) if kept]
    try:
        return chosen(find(strategies.lists(KEEP, min_size=len(parts), max_size=len(parts)), lambda keep: fails(chosen(keep)),
                           settings=HOW))
    except NoSuchExample:
        return parts


def shrink(values, number, fails):
    """A scenario and its values; fails(scenario) plays it."""
    plain = {name: next(iter(choices)) for name, choices in DIMENSIONS.items()}

    def with_only(items):
        return possible({**plain, **dict(items)})
    items = [(name, value) for name, value in values.items() if value != plain[name]]
    values = with_only(smallest(items, lambda chosen: fails(scenarios.make(with_only(chosen), number))))
    scenario = scenarios.make(values, number)
    steps = smallest(scenario.steps, lambda chosen: fails(dataclasses.replace(scenario, steps=chosen)))
    scenario = dataclasses.replace(scenario, steps=steps)
    setup = smallest(scenario.setup, lambda chosen: fails(dataclasses.replace(scenario, setup=chosen)))
    return dataclasses.replace(scenario, setup=setup)


def write(path, scenario, differences):
    """A scenario as a file that `run --play` takes, for any two servers."""
    content = {**dataclasses.asdict(scenario), 'impatient': sorted(scenario.impatient), 'differences': differences}
    path.write_text(json.dumps(content, indent=1))


def read(path):
    content = json.loads(path.read_text())
    del content['differences']
    steps = [Step(**{**step, 'arguments': tuple(step['arguments'])}) for step in content.pop('steps')]
    return Scenario(**{**content, 'steps': steps, 'impatient': set(content['impatient'])})
