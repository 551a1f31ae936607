"""Pure arithmetic on measured times."""

import statistics


def quartiles(values):
    """First quartile, median and third quartile as whole numbers."""
    if len(values) == 1:
        return [round(values[0])] * 3
    return [round(value) for value in statistics.quantiles(values, n=4, method="inclusive")]


def steady(steps, workers):
    """The steps of a round that count. The first one starts on an idle device.

    Worker processes have batches ready when a round begins, two each, and then deliver in turn: one step waits for all of
    them, the next ones for nothing. So what counts are means over one step per worker, after the queue ran empty."""
    if not workers:
        return steps[1:] or steps
    fed = steps[1 + 2 * workers:]
    turns = [statistics.mean(fed[i:i + workers]) for i in range(0, len(fed) - workers + 1, workers)]
    return turns or steps[1:] or steps


def of_rounds(rounds, workers=0):
    """Step times of all rounds together, of a program with so many loader processes."""
    each = [steady(one["device_ns"], workers) for one in rounds]
    marks = quartiles(sum(each, []))
    return {"step_time_ns": marks[1], "quartiles_ns": marks,
            "round_medians_ns": [round(statistics.median(one)) for one in each],
            "steps_ns": [one["device_ns"] for one in rounds], "host_steps_ns": [one["host_ns"] for one in rounds],
            "wall_ns": [one["wall_ns"] for one in rounds]}


def noise(rounds_of_a_side):
    """The distance between the medians of the rounds, as a share of their median. No prediction can be more accurate than this."""
    medians = rounds_of_a_side["round_medians_ns"]
    return (max(medians) - min(medians)) / statistics.median(medians)
