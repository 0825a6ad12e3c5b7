import { distance } from 'fastest-levenshtein';

/** The candidates, nearest first. */
export function byDistance(word: string, candidates: readonly string[]): string[] {
  const lower = word.toLowerCase();
  const ranked = candidates.map((candidate) => ({
    candidate,
    edits: distance(lower, candidate.toLowerCase()),
  }));
  return ranked.sort((a, b) => a.edits - b.edits).map(({ candidate }) => candidate);
}

/** The candidate that was probably meant: at most a third of its characters differ, or two of a short one. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const [best] = byDistance(word, candidates);
  if (best === undefined) return undefined;
  const limit = Math.max(2, Math.floor(Math.max(word.length, best.length) / 3));
  return distance(word.toLowerCase(), best.toLowerCase()) <= limit ? best : undefined;
}
