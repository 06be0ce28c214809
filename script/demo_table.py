"""Prints the table of the demo: size, latency and accuracy of the bundled model after each step.

Usage: demo_table.py TOOLS DIGITS ORIGINAL STEP...
  TOOLS   folder of the built tools
  DIGITS  folder with the labelled evaluation set
  Exits with status 1 if the accuracy of a step is more than half a percent below that of the original.
"""

import json
import os
import subprocess
import sys

LARGEST_LOSS = 0.005
RUNS = 30


def ask(tool, *flags):
    """Returns the JSON object that the tool prints."""
    return json.loads(subprocess.run([tool, "--json", *flags], check=True, capture_output=True, text=True).stdout)


def describe(tools, digits, original, model):
    """Returns one row: name, size, compressed size, nodes, latency, accuracy."""
    summary = ask(f"{tools}/summarize_graph", f"--in_graph={model}")
    comparison = ask(f"{tools}/validate_model", f"--reference={original}", f"--candidate={model}",
                     f"--inputs=image={digits}/eval_images.npy", "--outputs=probabilities",
                     f"--labels={digits}/eval_labels.npy", f"--runs={RUNS}", "--threads=1")
    output = comparison["outputs"][0]
    return {
        "model": os.path.basename(model),
        "size": summary["file_bytes"],
        "compressed": summary["compressed_bytes"],
        "nodes": summary["nodes"],
        "latency": comparison["candidate_seconds"] / comparison["reference_seconds"],
        "accuracy": output["candidate_accuracy"],
        "difference": output["max_abs"],
    }


def main():
    tools, digits, original, *steps = sys.argv[1:]
    rows = [describe(tools, digits, original, model) for model in [original, *steps]]
    print("\nWhat was gained, on 540 labelled images that training never saw\n")
    header = ("model", "size", "zstd", "nodes", "latency", "accuracy", "largest difference")
    table = [header] + [(row["model"], f"{row['size'] / 1e3:,.0f} kB", f"{row['compressed'] / 1e3:,.0f} kB",
                         str(row["nodes"]), f"{row['latency']:.2f} x", f"{row['accuracy']:.2%}",
                         f"{row['difference']:.2g}") for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(header))]
    for line in table:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(line, widths))))
    print("\nLatency is relative to the original, in one run on this machine with one thread.")
    print("The outputs:", *steps)
    for row in rows:
        if row["accuracy"] < rows[0]["accuracy"] - LARGEST_LOSS:
            sys.exit(f"demo: {row['model']} lost accuracy")


if __name__ == "__main__":
    main()
