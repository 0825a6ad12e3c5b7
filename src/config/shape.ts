import { LISTS } from './lists.ts';
import { unknownKey } from './nearest.ts';
import { isMapping, keyOf, type Mapping, type Path, type Problem } from './paths.ts';
import { SCALAR_KEYS } from './scalar-keys.ts';

const SCALAR = new Set(SCALAR_KEYS.map((scalar) => scalar.key));
const LIST = new Set<string>(Object.keys(LISTS));
const ALL = [...SCALAR, ...LIST];

/**
 * Holds the document against the known keys. Returns the scalars that stand in their right place (parse-lists.ts reads
 * lists from the document itself), and a problem for everything else. Empty sections count as absent.
 */
export function checkShape(document: unknown): { scalars: Mapping; problems: Problem[] } {
  if (document === null || document === undefined) return { scalars: {}, problems: [] };
  if (!isMapping(document)) {
    return {
      scalars: {},
      problems: [{ path: [], message: 'the config must be a mapping of keys to values' }],
    };
  }
  const problems: Problem[] = [];
  return { scalars: visit(document, [], problems), problems };
}

function visit(section: Mapping, path: Path, problems: Problem[]): Mapping {
  const kept: [string, unknown][] = [];
  for (const [name, value] of Object.entries(section)) {
    const here = [...path, name];
    const key = keyOf(here);
    if (LIST.has(key)) continue;
    if (SCALAR.has(key)) {
      if (isMapping(value)) problems.push({ path: here, message: 'must be a single value' });
      else kept.push([name, value]);
    } else if (!ALL.some((known) => known.startsWith(`${key}.`))) {
      problems.push(unknownKey(here, namesUnder(path), ALL));
    } else if (isMapping(value)) kept.push([name, visit(value, here, problems)]);
    else if (value !== null) problems.push({ path: here, message: 'must be a mapping of keys to values' });
  }
  return Object.fromEntries(kept);
}

/** What may stand directly under a section. */
function namesUnder(section: Path): string[] {
  const prefix = section.length === 0 ? '' : `${keyOf(section)}.`;
  const names = ALL.filter((key) => key.startsWith(prefix)).map(
    (key) => key.slice(prefix.length).split('.')[0] ?? '',
  );
  return [...new Set(names)];
}
