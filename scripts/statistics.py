#!/usr/bin/env python3
"""Writes tests/data/statistics.json: 200 inputs with the values that SciPy and statsmodels give for them.

    python3 -m venv venv && venv/bin/pip install scipy statsmodels && venv/bin/python scripts/statistics.py

tests/statistics.rs holds editgate's own functions to these values.
"""
import json
import math
import pathlib
import random

import scipy
import statsmodels
from scipy.stats import betabinom, binom, binomtest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

dice = random.Random(1)


def count():
    return dice.choice([1, 2, 5, 8, 24, 36, 86, 108, 324, 1000, 2500, dice.randint(1, 400)])


def passed(n):
    return dice.choice([0, n, dice.randint(0, n), dice.randint(0, n), dice.randint(0, n)])


rows = []
for _ in range(70):
    n = count()
    k = passed(n)
    rows.append({"what": "interval", "passed": k, "n": n,
                 "wilson": proportion_confint(k, n, method="wilson"),
                 "exact": binomtest(k, n).proportion_ci(method="exact")})
for _ in range(50):
    lost, gained = dice.choice([(dice.randint(0, 12), dice.randint(0, 12)), (dice.randint(0, 300), dice.randint(0, 300))])
    n, least = lost + gained, min(lost, gained)
    exact = float(mcnemar([[0, lost], [gained, 0]], exact=True).pvalue) if n else 1.0
    rows.append({"what": "paired", "lost": lost, "gained": gained, "p": min(exact, 1.0),
                 "mid_p": exact - float(binom.pmf(least, n, 0.5)) * (0.5 if lost == gained else 1)})
for _ in range(30):
    n, m = count(), count()
    k, l = passed(n), passed(m)
    low, high = confint_proportions_2indep(l, m, k, n, method="newcomb", compare="diff")
    rows.append({"what": "independent", "first": [k, n], "second": [l, m], "low": low, "high": high})
for _ in range(20):
    p = [dice.choice([dice.random(), dice.random() / 50]) for _ in range(dice.randint(1, 12))]
    rows.append({"what": "holm", "p": p, "adjusted": list(multipletests(p, method="holm")[1])})
for _ in range(30):
    n = count()
    k, a, b = passed(n), dice.randint(0, 300) + 0.5, dice.randint(0, 300) + 0.5
    rate = dice.random()
    rows.append({"what": "tail", "k": k, "n": n, "rate": rate, "a": a, "b": b,
                 "binomial": float(binom.cdf(k - 1, n, rate)) if k else 0.0,
                 "beta_binomial": float(betabinom.cdf(k - 1, n, a, b)) if k else 0.0})


def plain(value):
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)) or hasattr(value, "low"):
        return [plain(part) for part in (value if not hasattr(value, "low") else (value.low, value.high))]
    if isinstance(value, (int, str)):
        return value
    assert math.isfinite(value)
    return float(value)


made = {"scipy": scipy.__version__, "statsmodels": statsmodels.__version__, "rows": [plain(row) for row in rows]}
assert len(rows) == 200
path = pathlib.Path(__file__).parent.parent / "tests/data/statistics.json"
lines = ",\n".join(json.dumps(row) for row in made.pop("rows"))
head = json.dumps(made)[:-1]
path.write_text(f'{head}, "rows": [\n{lines}\n]}}\n')
