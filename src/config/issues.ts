import { detailOf } from '../core/errors.ts';
import { byDistance, nearest } from '../lib/nearest.ts';
import type { Written } from '../lib/parse-options.ts';
import { keysAt } from './keys.ts';
import { SINK_KEYS, SOURCE_KEYS } from './lists.ts';
import { keyOf, type Path, type Problem } from './paths.ts';

/** Issues of zod, recognised by shape: a user's module can have its own zod. */
interface Issues {
  readonly issues: readonly {
    readonly path: readonly PropertyKey[];
    readonly message: string;
    readonly keys?: readonly string[];
    /** Faults of the name of an entry. */
    readonly issues?: readonly { readonly message: string }[];
  }[];
}

const BESIDE_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  sinks: SINK_KEYS,
  sources: SOURCE_KEYS,
};

/** Problems from zod's issues, or from a message whose parts begin with a key. */
export function problemsOf(
  root: Path,
  error: unknown,
  schema: Written | undefined,
  everywhere: readonly string[] = [],
): Problem[] {
  if (hasIssues(error)) {
    // Unknown keys last: they can cause the other problems.
    const ordered = error.issues.toSorted((a, b) => (a.keys?.length ?? 0) - (b.keys?.length ?? 0));
    return ordered.flatMap(({ path, message, keys, issues }) => {
      const inside = path.map((step) => (typeof step === 'symbol' ? String(step) : step));
      const here = [...root, ...inside];
      if (keys === undefined) return [{ path: here, message: issues?.[0]?.message ?? message }];
      const common = inside.length > 0 ? [] : (BESIDE_OPTIONS[String(root[0])] ?? []);
      const known = schema === undefined ? [] : [...keysAt(schema, inside), ...common];
      return keys.map((key) => unknownKey([...here, key], known, everywhere));
    });
  }
  const key = keyOf(root);
  return detailOf(error)
    .split(PART)
    .map((part) => {
      const own = part.startsWith(`${key}.`) ? part.slice(key.length + 1) : part;
      const [, option, rest = ''] = OPTION_FIRST.exec(own) ?? [];
      if (option === undefined) return { path: root, message: part };
      return { path: [...root, ...stepsOf(option)], message: rest };
    });
}

/** Separates the keys of a message: line breaks, and semicolons before a further key. */
const PART = /\n|; (?=[a-z][\w.[\]-]*: )/;

/** "connectionString: must be …", or a sentence such as "`connectionString` must be …". */
const OPTION_FIRST =
  /^["'`]?([a-z][\w.[\]-]*)["'`]?(?:: | (?=(?:is|are|must|needs|has|holds|should|cannot|expects) ))(.*)$/;

/** `by[0].a` → `['by', 0, 'a']` */
function stepsOf(key: string): Path {
  return key
    .split(/[.[\]]+/)
    .flatMap((step) => (step === '' ? [] : /^\d+$/.test(step) ? Number(step) : step));
}

function hasIssues(error: unknown): error is Issues {
  return error instanceof Error && 'issues' in error && Array.isArray(error.issues);
}

/**
 * @param known valid keys at this level
 * @param everywhere all keys of the config, dotted, to recognise a key in the wrong section
 */
function unknownKey(path: Path, known: readonly string[], everywhere: readonly string[] = []): Problem {
  const instead = adviceOn((gone) => gone.test(keyOf(path)));
  if (instead !== null) return { path, message: instead };
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

/** Removed keys, and what to use instead. */
const GONE: readonly (readonly [key: RegExp, instead: string])[] = [
  [
    /^server\.workers$/,
    'start several receivers behind a load balancer instead, each with its own journal, or with journal.type: kafka',
  ],
  [
    /^journal\.encrypt(\.|$)/,
    'the topics are not sealed: deliverers drop events of erased users, and the receipt of an erasure says until when a topic keeps them',
  ],
  [
    /^service\.(idempotencyHeader|paths\.(createOrder|importOrder|createParsingJob|createUser|appointmentAvailability|team|brand|apiKeys?|managementKeys?|webhookHeaders))$/,
    'no command uses that operation: leave it out',
  ],
  [
    /^sinks\.[^.]+\.format$/,
    'the archive is NDJSON: before the update, replay an archive of Parquet files into one of NDJSON; `millrace export --follow --every 1h` makes Parquet or Delta tables',
  ],
  [
    /^receipts\.witnesses(\.|$)/,
    'the signed log stands for itself: compare it with receipts that senders kept (millrace receipt verify, archive prove --receipts)',
  ],
];

/** Advice for the variable of a removed key, without its prefix: `SERVICE_IDEMPOTENCY_HEADER`. */
export function insteadOfVariable(name: string): string | null {
  return adviceOn(({ source }) => {
    const words = source.replaceAll('\\.', '_').replaceAll(/([a-z])([A-Z])/g, '$1_$2');
    return new RegExp(words, 'i').test(name);
  });
}

function adviceOn(isIt: (pattern: RegExp) => boolean): string | null {
  const found = GONE.find(([pattern]) => isIt(pattern));
  return found === undefined ? null : `is no longer a key; ${found[1]}`;
}
