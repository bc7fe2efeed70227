/* Of pages that fit a search alike, those come first that tell what to do, and decisions last. */
var Scorer = {
  score: ([page, , , , score]) => {
    if (/^docs\/(decisions|production\/runbook)\//.test(page) || page === "CHANGELOG") return score - 12;
    return /^docs\/(tutorial|how-to\/|moving\/)/.test(page) ? score + 6 : score;
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
