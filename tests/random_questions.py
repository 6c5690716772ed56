"""Small random question files of all kinds, as docs/question-format.md describes them."""

from __future__ import annotations

from random import Random

CHANGES = (
    "gap",
    "rise",
    "fall",
    "flip",
    "flip-up",
    "flip-down",
    "flip-sure",
    "flip-up-sure",
    "flip-down-sure",
    "class",
    "class-to",
    "class-from",
)
MAX_REGIONS = 400


def question_text(seed: int) -> str:
    """Return a question that enumeration can answer."""
    rng = Random(f"question {seed}")
    change = CHANGES[seed % len(CHANGES)]
    cells = [rng.randint(1, 6) for _ in range(rng.randint(1, 5))]
    while _product(cells) > MAX_REGIONS:
        cells[cells.index(max(cells))] -= 1
    features = list(range(len(cells)))
    sensitive = rng.sample(features, min(len(features), rng.choice((1, 1, 2, 3))))
    others = [f for f in features if f not in sensitive]
    n_outputs = rng.randint(2, 4) if change.startswith("class") else 1
    lines = ["xcount-question 1", f"features {len(cells)}"]
    lines += [_axis(rng, n) for n in cells]
    lines.append(f"sensitive {len(sensitive)} {_words(sensitive)}")
    lines.append(f"distance {rng.choice(('any', 1, 1, 2, 3))}")
    lines.append(f"change {change}{_numbers(rng, change, n_outputs)}")
    closed = rng.sample(features, rng.randint(0, len(features))) if rng.random() < 0.3 else []
    lines.append(f"closed {len(closed)}")
    lines += [f"{f} {_ranges(rng, cells[f])}" for f in closed]
    along = rng.sample(others, rng.randint(0, len(others))) if rng.random() < 0.4 else []
    lines.append(f"along {len(along)}")
    lines += [f"{f} {cells[f]} {_words(_moved(rng, cells[f]))}" for f in along]
    for word in ("rules", "from", "to"):
        trees = [_tree(rng, cells, 2, 2) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
        lines += [f"{word} {len(trees)}", *trees]
    lines.append(f"outputs {n_outputs}")
    size = rng.choice((1, 3, 10, 10**6, 2**70))
    for _ in range(n_outputs):
        trees = [_tree(rng, cells, rng.randint(0, 4), size) for _ in range(rng.randint(0, 5))]
        lines += [f"trees {len(trees)}", *trees]
    lines.append("end")
    return "\n".join(lines) + "\n"


def _product(numbers: list[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def _words(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


def _axis(rng: Random, n_cells: int) -> str:
    order = rng.choice(("ordered", "ordered", "unordered", "placed"))
    if order == "placed":
        places = sorted(rng.randint(0, 7) for _ in range(n_cells))
        order += f" {n_cells} "
        order += " ".join("-" if rng.random() < 0.2 else str(place) for place in places)
    if rng.random() < 0.6:
        return f"{order} cells {n_cells}"
    weights = [rng.choice((0, 1, 1, 2, 7, 10**20)) for _ in range(n_cells)]
    weights[rng.randrange(n_cells)] += 1
    return f"{order} weights {n_cells} {_words(weights)}"


def _numbers(rng: Random, change: str, n_outputs: int) -> str:
    if change == "class":
        return ""
    if change.startswith("class"):
        return f" {rng.randrange(n_outputs)}"
    numbers = [rng.choice((-1, 0, 0, 1, 2, 5, 10**6)) for _ in range(3)]
    if change in ("flip-sure", "flip-up-sure", "flip-down-sure"):
        kept = sorted(numbers) if rng.random() < 0.8 else numbers
        return " " + _words(kept if change == "flip-sure" else kept[:2])
    return f" {numbers[0]}"


def _ranges(rng: Random, n_cells: int) -> str:
    bounds = sorted(rng.sample(range(n_cells + 1), rng.randint(0, n_cells + 1) // 2 * 2))
    return _words([len(bounds) // 2, *bounds])


def _moved(rng: Random, n_cells: int) -> list[int]:
    cells = list(range(n_cells))
    if rng.random() < 0.3:  # any list of cells is allowed
        return [rng.randrange(n_cells) for _ in cells]
    rng.shuffle(cells)
    return cells


def _tree(rng: Random, cells: list[int], depth: int, size: int) -> str:
    if depth == 0 or rng.random() < 0.1:
        return f"l {rng.randint(-size, size)}"
    feature = rng.randrange(len(cells))
    if rng.random() < 0.6:
        ranges = f"1 0 {rng.randint(1, cells[feature])}"
    else:
        ranges = _ranges(rng, cells[feature])
    left, right = (_tree(rng, cells, depth - 1, size) for _ in range(2))
    return f"n {feature} {ranges} {left} {right}"
