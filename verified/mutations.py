"""Change the verified counter in many ways and show that each change breaks its proof.

    python verified/mutations.py

prints a table in Markdown, which docs/verified.md shows. Needs Coq. A proof that still went through
would either be about a change that alters nothing, or about nothing: the program then fails.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
SECONDS = 120


@dataclass(frozen=True)
class Mutation:
    """A fault: the text that it replaces must occur in Count.v exactly once."""

    what: str
    old: str
    new: str


MUTATIONS = (
    Mutation("count a tie as above the threshold", "TGt T => T <? v", "TGt T => T <=? v"),
    Mutation("forget the sign of a difference", "TAbs G => G <? Z.abs v", "TAbs G => G <? v"),
    Mutation("bound a node by its left child only", "(Z.min (tmin l) (tmin r))", "(tmin l)"),
    Mutation(
        "let a decision hold one unit too far",
        "Some (true, (T - mn + 1, big))",
        "Some (true, (T - mn, big))",
    ),
    Mutation(
        "remember one offset too many",
        "(false, (- G - mn, G - mx))",
        "(false, (- G - mn, G - mx + 1))",
    ),
    Mutation(
        "let a gap pass with the wrong end",
        "(true, (- big, - G - mx - 1))",
        "(true, (- big, - G - mx))",
    ),
    Mutation(
        "shift a child's box the wrong way",
        "BRange (lo - (o' - o)) (hi - (o' - o))",
        "BRange (lo + (o' - o)) (hi + (o' - o))",
    ),
    Mutation(
        "join boxes instead of intersecting them",
        "BRange (Z.max lo lo') (Z.min hi hi')",
        "BRange (Z.min lo lo') (Z.max hi hi')",
    ),
    Mutation(
        "trust a memo entry without comparing trees",
        "test_eqb a a' && listeqb ctree_eqb ts ts'",
        "test_eqb a a'",
    ),
    Mutation(
        "use a memo entry's answer for all offsets",
        "Some (e_count e, e_box e) else",
        "Some (e_count e, BAny) else",
    ),
    Mutation(
        "compare trees by their hashes only",
        "&& ((f =? f')%nat && (cells_eqb c c' && (ctree_eqb l l' && ctree_eqb r r')))",
        "&& true",
    ),
    Mutation(
        "merge steps at the wrong cell",
        "else if (u1 <? u2)%nat then Until u1 (h a b)",
        "else if (u1 <? u2)%nat then Until u2 (h a b)",
    ),
    Mutation(
        "take one cell too few of a run",
        "(Z.of_nat k * w, (n - k, w)%nat :: r)",
        "(Z.of_nat k * w, (n - S k, w)%nat :: r)",
    ),
    Mutation(
        "go on with the wrong child when pruning",
        "then prune side f s l\n",
        "then prune side f s r\n",
    ),
    Mutation(
        "prune by overlap instead of inclusion",
        "if side then subset s s' else false",
        "if side then negb (disjoint s s') else false",
    ),
    Mutation("add the overlap of two neighbours", "na + nb - nab", "na + nb + nab"),
    Mutation("forget to divide by a feature's weight", "let n := s / w in", "let n := s in"),
    Mutation(
        "lose the leaves of eliminated trees",
        "FAtom a (o + k) r) (elim_row f ts)",
        "FAtom a o r) (elim_row f ts)",
    ),
    Mutation(
        "subtract in the wrong direction for a rise",
        "| Rise G => atom (TGt G) (differences w v)",
        "| Rise G => atom (TGt G) (differences v w)",
    ),
    Mutation(
        "read the target without moving along",
        "Some cs => Moved cs | None => Stays end\n    end.",
        "Some cs => Stays | None => Stays end\n    end.",
    ),
    Mutation(
        "ignore the rules at the target",
        "(conj (positive_form (target_fate m) (filter touched (q_rules q)))",
        "(conj (FConst true)",
    ),
    Mutation(
        "ignore where a change may start",
        "(positive_form (start_fate m) (q_from q))",
        "(FConst true)",
    ),
    Mutation("enter closed cells", "&& may_enter (s_region a) (s_region b)) stops", ") stops"),
    Mutation(
        "ignore the distance",
        "filter (fun b => close g S (q_distance q) (s_region a) (s_region b)\n",
        "filter (fun b => true\n",
    ),
    Mutation(
        "let a later class win a tie",
        "atom (TGt 0) (lead trees k j)",
        "atom (TGt (-1)) (lead trees k j)",
    ),
    Mutation(
        "leave out a tree that a change does not touch",
        "nth k untouched [] ++ nth k trees []",
        "tl (nth k untouched []) ++ nth k trees []",
    ),
    Mutation("give a mask to no process", "else (i =? 0)%nat.", "else false."),
    Mutation("weigh every mask alike", "(acc + mask_weight g S (s_mask a) * n)", "(acc + n)"),
)


def theories() -> list[str]:
    """Return the proof's files in the order of the Makefile."""
    text = (FOLDER / "Makefile").read_text().replace("\\\n", " ")
    found = re.search(r"^THEORIES := (.*)$", text, re.MULTILINE)
    assert found is not None
    return found[1].split()


def broken_at(count: str) -> str | None:
    """Return the lemma at which the proof of a changed Count.v fails; None if it does not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for theory in theories():
            shutil.copy(FOLDER / f"{theory}.v", folder)
        (folder / "Count.v").write_text(count)
        for theory in theories():
            command = ["coqc", "-q", "-Q", ".", "XCount", f"{theory}.v"]
            try:
                run = subprocess.run(
                    command,
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=SECONDS,
                )
            except subprocess.TimeoutExpired:
                return f"{theory}: no end"
            if run.returncode != 0:
                return f"{theory}: {lemma_at(folder / f'{theory}.v', run.stderr)}"
    return None


def lemma_at(file: Path, message: str) -> str:
    """Return the name of the lemma or definition that an error message is about."""
    found = re.search(r"line (\d+)", message)
    assert found is not None, message
    before = file.read_text().splitlines()[: int(found[1])]
    names = re.findall(r"(?:Lemma|Theorem|Definition|Fixpoint) (\w+)", "\n".join(before))
    return str(names[-1])


def main() -> int:
    """Print the table; the status is 1 if a change broke nothing."""
    count = (FOLDER / "Count.v").read_text()
    print("| change of the algorithm | the proof breaks in |\n|---|---|", flush=True)
    n_survivors = 0
    for mutation in MUTATIONS:
        assert count.count(mutation.old) == 1, mutation.what
        place = broken_at(count.replace(mutation.old, mutation.new))
        n_survivors += place is None
        theory, _, lemma = (place or "").partition(": ")
        shown = "**nowhere**" if place is None else f"`{theory}.v`, `{lemma}`"
        print(f"| {mutation.what} | {shown} |", flush=True)
    return min(1, n_survivors)


if __name__ == "__main__":
    sys.exit(main())
