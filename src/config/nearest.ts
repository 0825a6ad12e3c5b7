import { byDistance, nearest } from '../lib/nearest.ts';
import { keyOf, type Path, type Problem } from './paths.ts';

/**
 * The problem for a key that does not exist.
 * @param known keys that may stand beside it.
 * @param everywhere all keys of the config as dotted paths, to spot a key in the wrong section.
 */
export function unknownKey(
  path: Path,
  known: readonly string[],
  everywhere: readonly string[] = [],
): Problem {
  const word = String(path.at(-1));
  const parent = path.slice(0, -1);
  const close = nearest(word, known);
  if (close !== undefined) return suggestion(path, [...parent, close]);
  const elsewhere = everywhere.find((key) => key.endsWith(`.${word}`));
  if (elsewhere !== undefined) return suggestion(path, [elsewhere]);
  const names = byDistance(word, known).join(', ');
  return {
    path,
    message: `is not a known key${names === '' ? '' : `; known here, nearest first: ${names}`}`,
  };
}

function suggestion(path: Path, better: Path): Problem {
  const key = keyOf(better);
  return { path, message: `is not a known key; did you mean ${key}?`, suggestion: key };
}
