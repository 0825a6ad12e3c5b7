import { messageOf } from '../core/errors.ts';
import { keyOf, mapTexts, type Environment, type Path, type Problem } from './paths.ts';

export interface Substitution {
  readonly value: unknown;
  /** Keys whose value came, in whole or in part, from a variable or a file: never to be printed. */
  readonly substituted: ReadonlySet<string>;
  /** What could not be resolved; the value keeps its `${…}` there. */
  readonly unset: readonly Problem[];
  /** Names of the variables the document mentions. */
  readonly variables: ReadonlySet<string>;
}

/** Escape, then a complete reference, then one that is never closed. */
const REFERENCE = /\$\$\{|\$\{([^}]*)(\}?)/g;

/**
 * Replaces `${NAME}` and `${file:/path}` in every text of a parsed document, also inside longer ones; `$${` stands for a
 * literal `${`. Runs after parsing, so no variable can add keys or break the file. An empty variable counts as unset.
 * @param readFile returns the text of a file or throws an Error that says why not.
 */
export function substitute(
  document: unknown,
  env: Environment,
  readFile: (path: string) => string,
): Substitution {
  const substituted = new Set<string>();
  const variables = new Set<string>();
  const unset: Problem[] = [];
  const value = mapTexts(document, (text, path) => {
    const missing: string[] = [];
    const result = text.replaceAll(REFERENCE, (whole: string, name: string | undefined, end: string) => {
      if (name === undefined) return '${';
      substituted.add(keyOf(path));
      if (name.startsWith('file:')) {
        if (end !== '') return readSecret(name.slice('file:'.length), readFile, missing);
      } else if (end !== '' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
        variables.add(name);
        const found = env[name];
        if (found !== undefined && found !== '') return found;
        missing.push(
          `needs the environment variable ${name}, which is ${found === '' ? 'empty' : 'not set'}`,
        );
        return whole;
      }
      missing.push(
        `holds ${JSON.stringify(whole)}, which is not \${NAME} or \${file:/path}; write $\${ for a literal \${`,
      );
      return whole;
    });
    unset.push(...missing.map((message) => ({ path, message })));
    return missing.length === 0 ? result : text;
  });
  return { value, substituted, unset, variables };
}

function readSecret(path: string, readFile: (path: string) => string, missing: string[]): string {
  try {
    const text = readFile(path).replace(/\r?\n$/, '');
    if (text === '') missing.push(`needs the file ${path}, which is empty`);
    return text;
  } catch (error) {
    missing.push(`needs the file ${path}: ${messageOf(error)}`);
    return '';
  }
}

/** The document without the values at these paths: list items go, keys go. */
export function without(document: unknown, paths: readonly Path[]): unknown {
  const gone = new Set(paths.map(keyOf));
  const visit = (value: unknown, path: Path): unknown => {
    if (Array.isArray(value)) {
      return value
        .map((item, index) => ({ item: item as unknown, at: [...path, index] }))
        .filter(({ at }) => !gone.has(keyOf(at)))
        .map(({ item, at }) => visit(item, at));
    }
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .filter(([key]) => !gone.has(keyOf([...path, key])))
        .map(([key, item]) => [key, visit(item, [...path, key])]),
    );
  };
  return visit(document, []);
}
