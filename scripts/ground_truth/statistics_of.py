"""Pure arithmetic on measured times."""

import statistics


def quartiles(values):
    """First quartile, median and third quartile as whole numbers."""
    if len(values) == 1:
        return [round(values[0])] * 3
    return [round(value) for value in statistics.quantiles(values, n=4, method="inclusive")]


def of_rounds(rounds):
    """Step times of all rounds together. The first step of a round starts on an idle device and is left out."""
    steady = [value for one in rounds for value in (one["device_ns"][1:] or one["device_ns"])]
    marks = quartiles(steady)
    return {"step_time_ns": marks[1], "quartiles_ns": marks,
            "round_medians_ns": [round(statistics.median(one["device_ns"][1:] or one["device_ns"])) for one in rounds],
            "steps_ns": [one["device_ns"] for one in rounds], "host_steps_ns": [one["host_ns"] for one in rounds],
            "wall_ns": [one["wall_ns"] for one in rounds]}


def noise(rounds_of_a_side):
    """The distance between the medians of the rounds, as a share of their median. No prediction can be more accurate than this."""
    medians = rounds_of_a_side["round_medians_ns"]
    return (max(medians) - min(medians)) / statistics.median(medians)
