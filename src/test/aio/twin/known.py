"""Differences that are meant.  Each is in the manual's table of what differs from PostgreSQL, under the name that it has
here, or else run does not begin; it prints how often each has come.
"""
import re


def other_indexes_of_parents(difference):
    """A foreign key that is checked without a query locks the index of its key, and not all, or that of a plan."""
    locks = difference.stock + difference.ours if difference.what.startswith('locks') else []
    return any(mode == 'RowShareLock' for _session, _name, _kind, mode, _granted in locks) and all(
        kind in 'iI' and mode in ('RowShareLock', 'SIReadLock') for _session, _name, kind, mode, _granted in locks)


def rows_of_failing_statements(difference):
    """Rows that come after the one that fails may have been inserted by then; later ones are on other pages, then."""
    if 'twin_tools.statistics' not in difference.where:
        return False
    return len(difference.stock) == len(difference.ours) and all(
        name == other and len(counts := count.split()) == len(more := counts_of_ours.split()) and
        (counts == more or int(counts[0]) < int(more[0]) and counts[1:3] == more[1:3])
        for (name, count), (other, counts_of_ours) in zip(difference.stock, difference.ours))


def notices_of_failing_statements(difference):
    """Index expressions may have been evaluated for the row that fails, and text search sends notices."""
    def others(heard):
        return [item for item in heard if item[0] != 'notice' or ('C', '54000') not in item]
    return difference.what.endswith('hears') and any(map(tells_of_error, difference.stock)) and \
        others(difference.stock) == others(difference.ours)


def tells_of_error(item):
    """Is it an error, or what a block says that has caught one?"""
    return item[0] == 'error' or item[0] == 'notice' and any(
        name == 'M' and re.match('[0-9A-Z]{5} ', value) for name, value in item[1:])


def other_plans(difference):
    """What a serializable transaction has read, by which index, and whether at all, depends on sizes of files."""
    return difference.what == 'locks, with files of other sizes' and all(
        mode == 'SIReadLock' for _session, _name, _kind, mode, _granted in difference.stock + difference.ours)


def other_places(difference):
    """Rows that are stored together may be in another order, which nobody promises, where pages have gaps."""
    copied_out = 'COPY (SELECT id, v FROM t) TO STDOUT' in difference.where and difference.what.endswith('hears')
    left = 'FROM t ORDER BY tableoid::regclass::text, ctid' in difference.where and difference.what == 'result'
    return (copied_out or left) and difference.stock != difference.ours and \
        sorted(map(str, difference.stock)) == sorted(map(str, difference.ours)) or room_for_updates(difference)


def room_for_updates(difference):
    """Whether a row's new version has room in the old one's page depends on what else is there."""
    if 'twin_tools.statistics' not in difference.where or len(difference.stock) != len(difference.ours):
        return False
    return all(name == other and counts.split()[:3] == counts_of_ours.split()[:3]
               for (name, counts), (other, counts_of_ours) in zip(difference.stock, difference.ours))


KNOWN = {
    'Files': lambda difference: other_plans(difference) or other_places(difference),
    'Statements that fail': lambda difference: rows_of_failing_statements(difference) or notices_of_failing_statements(difference),
    'Queries of foreign keys': other_indexes_of_parents,
}
seen = dict.fromkeys(KNOWN, 0)


def is_known(difference):
    for name, matches in KNOWN.items():
        if matches(difference):
            seen[name] += 1
            return True
    return False


def table_of(manual):
    return re.search(r'<table id="aio-differences">.*?</table>', manual, re.S)[0]


def missing_in(manual):
    """Entries that the manual's table does not have."""
    table = table_of(manual)
    return [name for name in KNOWN if f'<entry>{name}</entry>' not in table]


def switches(manual):
    """Parameters that make all as in PostgreSQL, as the manual's table says, {name: value}."""
    last = ''.join(re.findall(r'<row>(?:\s*<entry>.*?</entry>){2}\s*<entry>(.*?)</entry>', table_of(manual), re.S))
    values = dict(re.findall(r'<varname>([\w.]+)</varname>\s+<literal>= (\w+)</literal>', last))
    assert values and set(values) == set(re.findall('<varname>(.*?)</varname>', last)), 'a parameter has no value'
    return values
