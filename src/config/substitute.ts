import { messageOf } from '../core/errors.ts';
import { keyOf, mapDocument, type Environment, type Path, type Problem } from './paths.ts';

export interface Substitution {
  readonly value: unknown;
  /** Keys whose values came, even in part, from a variable or a file: never printed. */
  readonly substituted: ReadonlySet<string>;
  /** References that could not be resolved; the value keeps its `${…}`. */
  readonly unset: readonly Problem[];
  /** Names of the variables in the document. */
  readonly variables: ReadonlySet<string>;
}

/** An escape, a reference, or one that is not closed. */
const REFERENCE = /\$\$\{|\$\{([^}]*)(\}?)/g;

/**
 * Replaces `${NAME}` and `${file:/path}` in every text of a parsed document, also inside longer texts; `$${` is a literal
 * `${`. Runs after parsing, so that no variable can add keys. An empty variable counts as unset.
 * @param readFile throws an Error with the reason
 */
export function substitute(
  document: unknown,
  env: Environment,
  readFile: (path: string) => string,
): Substitution {
  const substituted = new Set<string>();
  const variables = new Set<string>();
  const unset: Problem[] = [];
  const value = mapDocument(document, (text, path) => {
    if (typeof text !== 'string') return text;
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

/** The document without the values at these paths. */
export function without(document: unknown, paths: readonly Path[]): unknown {
  const left = new Set(paths.map(keyOf));
  return mapDocument(document, (value, path) => (left.has(keyOf(path)) ? undefined : value));
}
