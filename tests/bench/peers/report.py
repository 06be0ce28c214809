"""The results as Markdown, for docs/performance.md."""

import statistics

from configurations import OURS

PEERS = ["TensorFlow", "LiteRT", "ONNX Runtime", "OpenVINO", "OpenCV"]

# Upper limits of the ratios: the geometric mean over the models, and any single model.
GOALS = {"f32": (0.95, 1.1), "auto": (0.7, None), "cold": (0.5, None), "memory": (None, 1.0)}
LARGEST_OVER_WEIGHTS = 1.2


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def best_of(entries, key):
    """Returns for each engine the entry with the smallest `key`."""
    best = {}
    for entry in entries:
        if entry["engine"] not in best or entry[key] < best[entry["engine"]][key]:
            best[entry["engine"]] = entry
    return best


def best_peer(best, key):
    return min((entry for engine, entry in best.items() if engine != OURS), key=lambda entry: entry[key], default=None)


def three_digits(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def ratio_of(ours, our_key, peer, peer_key):
    return ours[our_key] / peer[peer_key] if ours and peer else None


def ratio_cell(ratio):
    return "-" if ratio is None else f"{ratio:.3f}"


def conclusion(mode, ratios):
    """`ratios`: {model: ratio or None}."""
    ratios = {model: ratio for model, ratio in ratios.items() if ratio is not None}
    if not ratios:
        return "Nothing to compare.\n"
    mean, slowest = statistics.geometric_mean(ratios.values()), max(ratios, key=ratios.get)
    goal_mean, goal_worst = GOALS[mode]
    text = f"{len(ratios)} models: geometric mean of the ratios {mean:.3f}"
    if goal_mean is not None:
        text += f" (goal {goal_mean}: {'met' if mean <= goal_mean else '**missed**'})"
    text += f"; largest {ratios[slowest]:.3f}, {slowest}"
    if goal_worst is not None:
        text += f" (goal {goal_worst}: {'met' if ratios[slowest] <= goal_worst else '**missed**'})"
    return text + ".\n"


def contest_rows(results, ratios):
    for result in results:
        best = best_of(result["entries"], "median_ms")
        cells = [result["model"]]
        for engine in [OURS, *PEERS]:
            entry = best.get(engine)
            cells.append(f"{three_digits(entry['median_ms'])} {entry['mode']}, {entry['p99_over_median']:.2f}"
                         if entry else "-")
        peer = best_peer(best, "median_ms")
        ratios[result["model"]] = ratio_of(best.get(OURS), "median_ms", peer, "median_ms")
        cells += [peer["engine"] if peer else "-", ratio_cell(ratios[result["model"]])]
        steadiest = min((e["p99_over_median"] for engine, e in best.items() if engine != OURS), default=None)
        ours = best.get(OURS)
        cells.append("-" if steadiest is None or ours is None else
                     "met" if ours["p99_over_median"] <= steadiest else f"**missed** ({steadiest:.2f})")
        yield cells


def contest(mode, results):
    text = ""
    for threads in sorted({result["threads"] for result in results}):
        chosen = [result for result in results if result["threads"] == threads]
        text += f"### {mode}, {threads} thread{'s' if threads > 1 else ''}\n\n"
        text += "Each cell: median ms, the mode, p99/median.\n\n"
        ratios = {}
        text += table(["model", OURS, *PEERS, "best peer", "ratio", "steadier than every peer"],
                      contest_rows(chosen, ratios))
        text += "\n" + conclusion(mode, ratios) + "\n" + absences(chosen)
    return text


def accuracy(_, results):
    names = []
    for result in results:
        names += [name for name in [*result["accuracy"], *result["absent"]] if name not in names]
    rows = []
    for name in names:
        row = [name]
        for result in results:
            judged = result["accuracy"].get(name)
            if judged is None:
                row.append("-")
                continue
            other_class = any(entry.get("same_first_class") is False for entry in judged["outputs"])
            row.append(f"{judged['worst']:.2g}" + ("" if judged["inside"] else " **out**") +
                       (", other class" if other_class else ""))
        rows.append(row)
    return ("### accuracy\n\nEach cell: the largest error of an output, relative to its size; **out**: outside the "
            "budget (per output, rms error <= 3 % of the rms or <= 1e-4; the same first class).\n\n" +
            table(["configuration", *(result["model"] for result in results)], rows) + "\n" + absences(results))


def cold(_, results):
    text = ""
    for threads in sorted({result["threads"] for result in results}):
        chosen = [result for result in results if result["threads"] == threads]
        for result in chosen:
            for entry in result["entries"]:
                entry["start_ms"] = entry["load_ms"] + entry["first_ms"]
        rows, ratios = [], {}
        for result in chosen:
            best = best_of(result["entries"], "start_ms")
            ours = best_of(result["entries"], "total_ms").get(OURS)
            row = [result["model"], f"{three_digits(ours['total_ms'])} {ours['mode']}" if ours else "-"]
            for engine in PEERS:
                entry = best.get(engine)
                row.append(f"{three_digits(entry['load_ms'])} + {three_digits(entry['first_ms'])} {entry['mode']}; "
                           f"{three_digits(entry['total_ms'])}" if entry else "-")
            ratios[result["model"]] = ratio_of(ours, "total_ms", best_peer(best, "start_ms"), "start_ms")
            rows.append([*row, ratio_cell(ratios[result["model"]])])
        text += (f"### cold, {threads} thread{'s' if threads > 1 else ''}\n\nOurs: ms from the start of the process to "
                 "the first output. Peers: load + first run; the whole process with its imports. The ratio compares "
                 "with load + first run alone.\n\n")
        text += table(["model", OURS, *PEERS, "ratio"], rows)
        text += "\n" + conclusion("cold", ratios) + "\n" + absences(chosen)
    return text


def memory(_, results):
    text = ""
    for threads in sorted({result["threads"] for result in results}):
        chosen = [result for result in results if result["threads"] == threads]
        rows, ratios = [], {}
        for result in chosen:
            best = best_of(result["entries"], "resident")
            ours = best.get(OURS)
            row = [result["model"], f"{result['weights'] / 1e6:.1f}"]
            for engine in [OURS, *PEERS]:
                entry = best.get(engine)
                row.append(f"{entry['resident'] / 1e6:.1f} ({entry['anonymous'] / 1e6:.1f}) {entry['mode']}"
                           if entry else "-")
            over = ours["resident"] / result["weights"] if ours else None
            row.append(f"{over:.2f} {'met' if over <= LARGEST_OVER_WEIGHTS else '**missed**'}" if over else "-")
            ratios[result["model"]] = ratio_of(ours, "resident", best_peer(best, "resident"), "resident")
            rows.append([*row, ratio_cell(ratios[result["model"]])])
        text += (f"### memory, {threads} thread{'s' if threads > 1 else ''}\n\nPeak MB over the process before it "
                 "loads: resident (anonymous).\n\n")
        text += table(["model", "weights", OURS, *PEERS, "over the weights", "ratio"], rows)
        text += "\n" + conclusion("memory", ratios) + "\n" + absences(chosen)
    return text


def absences(results):
    """Returns why configurations are not in a table, grouped by reason."""
    models = {}
    for result in results:
        for name, reason in result["absent"].items():
            models.setdefault((name, reason), []).append(result["model"])
    names = {}
    for (name, reason), found in models.items():
        names.setdefault((reason, tuple(found)), []).append(name)
    if not names:
        return ""
    everywhere = {result["model"] for result in results}
    lines = [f"- {', '.join(alike)} ({'every model' if set(found) == everywhere else ', '.join(found)}): {reason}"
             for (reason, found), alike in names.items()]
    return "Not in the table:\n\n" + "\n".join(lines) + "\n\n"


SECTIONS = {"f32": contest, "auto": contest, "accuracy": accuracy, "cold": cold, "memory": memory}


def to_markdown(results):
    text = (f"Machine: {results['machine']}, load average {results['load_average']:.1f} at the start. "
            f"{results['rounds']} rounds, turns of {results['turn_ms']:g} ms, engines in turn in one run. "
            f"{', '.join(results['versions'])}.\n\n")
    return text + "".join(section(mode, results["modes"][mode]) for mode, section in SECTIONS.items()
                          if mode in results["modes"])
