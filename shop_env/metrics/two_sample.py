"""Can a classifier distinguish simulated sessions from human ones? Needs scikit-learn (the extra `baselines`).

    AUC = share of pairs (human session, simulated session) that it orders rightly      Lopez-Paz, Oquab 2017

over sessions that it did not learn from: it is fitted on four fifths of the users and applied to the others, so that
it cannot win by knowing a person. Range 0–1: 0.5 where it cannot distinguish them, 1 where it always can. It finds that
something is wrong and not what. Far below 0.5 simulated sessions repeat those of other people, which it has learnt to
hold for human. Logistic regression over the square roots of session_vectors.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from shop_env.metrics.statistics import Codes, Floats

FOLDS = 5


def two_sample_auc(human: Floats, human_users: Codes, simulated: Floats, simulated_users: Codes) -> float:
    """The AUC over all sessions, each scored by the fold that did not see its user; NaN with fewer than two users."""
    vectors = np.sqrt(np.concatenate([human, simulated]))
    is_human = np.repeat([True, False], [len(human), len(simulated)])
    users = np.concatenate([human_users, simulated_users])
    folds = min(FOLDS, len(np.unique(users)))
    if folds < 2 or not len(human) or not len(simulated):
        return float("nan")
    areas, pairs = [], []
    for train, test in GroupKFold(folds).split(vectors, is_human, users):
        ours, theirs = int(is_human[test].sum()), int((~is_human[test]).sum())
        if len(np.unique(is_human[train])) == 2 and ours and theirs:
            model = LogisticRegression(max_iter=1000).fit(vectors[train], is_human[train])
            areas.append(roc_auc_score(is_human[test], model.decision_function(vectors[test])))
            pairs.append(ours * theirs)
    return float(np.average(areas, weights=pairs)) if areas else float("nan")
