#!/usr/bin/python3
"""fuzz_weave.py PRISTINE [--rounds N] [--seed S]: seams on an upstream that has changed.

Each round takes a seam and a file that it changes, and alters that file near the place, as a new release might: a
statement goes, comes twice, comes once more elsewhere in the function, changes places with its neighbour, is in another
function; a name, or the function's, is another one. Then the seam must fail by name, or do what it does to the file as
it is: the same lines, in the same functions, and between the same neighbours unless those were altered. What is done to
a statement, or next to it, may go with it. Anything else would have been built.
"""
import argparse
import difflib
import importlib.machinery
import importlib.util
import pathlib
import random
import re
import sys

sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader('weave', str(pathlib.Path(__file__).resolve().parent.parent / 'weave'))
weave = importlib.util.module_from_spec(importlib.util.spec_from_loader('weave', LOADER))
LOADER.exec_module(weave)

FUNCTION = re.compile(r'^([A-Za-z_]\w*)\(')
STATEMENT = re.compile(r'^\s+\S.*;\s*$')
NEAR = 12       # lines on either side of a seam's place


def words(line):
    """A line without its layout, which is spatch's business."""
    return ' '.join(line.split())


def effects(before, after):
    """What a seam has done: for each run of changed lines the function, the lines, and the neighbours."""
    functions, function = [], ''
    for line in after.splitlines():
        match = FUNCTION.match(line)
        if match and not line.endswith(';'):
            function = match[1]
        functions.append(function)
    before, after = ([words(line) for line in text.splitlines()] for text in (before, after))
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != 'equal':
            gone, come = (tuple(line for line in lines if line) for lines in (before[a:b], after[c:d]))
            above = next((line for line in reversed(before[:a]) if line), '')
            below = next((line for line in before[b:] if line), '')
            yield functions[min(c, len(functions) - 1)], gone, come, above, below, a


def same_place(expected, found, altered, moved=None):
    """Are these the same effects, but for neighbours that were altered?  `moved`: a statement, and to which function."""
    if len(expected) != len(found):
        return False
    if moved:
        expected, found = (sorted(each, key=lambda effect: effect[1:3]) for each in (expected, found))
    for one, other in zip(expected, found):
        goes_with_it = moved and moved[0] in {*one[1], *one[2], *one[3:5]} and other[0] == moved[1]
        # where a call is broken into lines depends on the length of names
        if [' '.join(lines) for lines in one[1:3]] != [' '.join(lines) for lines in other[1:3]] or one[0] != other[0] and not goes_with_it:
            return False
        # what moves with a line that was altered is where it belongs
        if one[3:5] != other[3:5] and not altered & {*one[1], *one[2], *one[3:5], *other[3:5]}:
            return False
    return True


def bounds(lines, at):
    """The function around a line: from its name to the brace that ends it."""
    first = next((n for n in range(min(at, len(lines) - 1), -1, -1)
                  if FUNCTION.match(lines[n]) and not lines[n].rstrip().endswith(';')), None)
    if first is None:
        return None
    last = next((n for n in range(first, len(lines)) if lines[n] == '}'), None)
    return None if last is None or last < at else (first, last)


def is_statement(lines, n):
    """Is this line a statement of its own, as far as one can tell from its looks?"""
    before = next((words(line) for line in reversed(lines[:n]) if line.strip()), '')
    return bool(STATEMENT.match(lines[n])) and lines[n].count('(') == lines[n].count(')') and \
        before.endswith((';', '{', '}', '*/'))


def alter(rng, text, places):
    """Another text, the lines that were altered, what was done, new names, and what has moved to where; or None."""
    lines = text.splitlines()
    at = rng.choice(places)
    function = bounds(lines, at)
    if function is None:
        return None
    first, last = function
    near = [n for n in range(max(first, at - NEAR), min(last, at + NEAR)) if is_statement(lines, n)]
    kind = rng.choice(('delete', 'twice', 'elsewhere', 'swap', 'move', 'rename', 'rename function'))
    if kind == 'rename function':
        name = FUNCTION.match(lines[first])[1]
        # there may be one for each platform
        lines = [re.sub(rf'^{name}\(', f'{name}2(', line) for line in lines]
        return '\n'.join(lines) + '\n', {words(lines[first])}, f'{kind} {name}', {name: name + '2'}, None
    if not near:
        return None
    n = rng.choice(near)
    line = lines[n]
    altered, renamed, moved = {words(line)}, {}, None
    if kind == 'delete':
        del lines[n]
    elif kind == 'twice':
        lines.insert(n, line)
    elif kind == 'elsewhere':
        to = rng.choice([m for m in range(first + 1, last) if is_statement(lines, m)])
        altered |= {words(lines[to]), words(lines[to + 1])}
        lines.insert(to + 1, line)
    elif kind == 'move':
        others = [m for m in range(len(lines)) if not first <= m <= last and is_statement(lines, m) and bounds(lines, m)]
        if not others:
            return None
        to = rng.choice(others)
        altered |= {words(lines[to]), words(lines[to + 1])}
        moved = words(line), FUNCTION.match(lines[bounds(lines, to)[0]])[1]
        lines.insert(to + 1, line)
        del lines[n + (to < n)]
    elif kind == 'swap':
        other = next((m for m in range(n + 1, last) if is_statement(lines, m)), None)
        if other is None:
            return None
        altered |= {words(lines[other])}
        lines[n], lines[other] = lines[other], line
    else:
        name = rng.choice(re.findall(r'[A-Za-z_]\w*', line) or ['x'])
        lines[n] = re.sub(rf'\b{name}\b', name + '2', line, count=1)
        altered |= {words(lines[n])}
        renamed = {name: name + '2'}
    return '\n'.join(lines) + '\n', altered, f'{kind} "{words(line)}"', renamed, moved


def with_old_names(effects, renamed):
    """These effects, as if nothing had another name: what a seam passes on has the one that it finds."""
    def old(text):
        for name, new in renamed.items():
            text = re.sub(rf'\b{new}\b', name, text)
        return text
    for function, gone, come, above, below, at in effects:
        yield old(function), tuple(map(old, gone)), tuple(map(old, come)), old(above), old(below), at


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('pristine', type=pathlib.Path)
    parser.add_argument('--rounds', type=int, default=60)
    parser.add_argument('--seed', type=int, default=random.randrange(10 ** 6))
    args = parser.parse_args()

    targets = [(rule, file) for rule in weave.load_rules() for file in rule.targets if file.endswith(('.c', '.h'))]
    print(f'seed {args.seed}', flush=True)
    rng = random.Random(args.seed)
    outcomes, wrong = {'failed by name': 0, 'same place': 0}, 0
    while sum(outcomes.values()) + wrong < args.rounds:
        rule, file = rng.choice(targets)
        text = (args.pristine / file).read_text()
        expected = list(effects(text, rule.weave(file, text)))
        altered = alter(rng, text, [effect[5] for effect in expected])
        if altered is None:
            continue
        changed, lines, what, renamed, moved = altered
        try:
            found = list(with_old_names(effects(changed, rule.weave(file, changed)), renamed))
        except weave.Misfit:
            outcomes['failed by name'] += 1
            continue
        if same_place(expected, found, lines, moved):
            outcomes['same place'] += 1
        else:
            wrong += 1
            print(f'WRONG PLACE: seam {rule.name}, {file}: {what}')
            for label, list_of in ('expected', expected), ('found', found):
                print(f'  {label}: {[effect[:5] for effect in list_of]}')
    print(', '.join(f'{count} {outcome}' for outcome, count in outcomes.items()) + f', {wrong} in a wrong place')
    sys.exit(wrong > 0)


if __name__ == '__main__':
    main()
