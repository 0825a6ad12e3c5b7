import { MillraceError } from '../core/errors.ts';
import { keyOf, type Problem } from './paths.ts';
import { parseYamlText, YamlFault, type YamlText } from '../lib/yaml.ts';

/** A fault of a config, and its position. */
interface ConfigProblem {
  /** `sinks.archive.rotate.every`; empty for the file as a whole. */
  readonly key: string;
  /** Completes a sentence that begins with the key. */
  readonly message: string;
  readonly file: string;
  /** Of the value, from 1; null for a key that is not in the file. */
  readonly line: number | null;
  readonly column: number | null;
  /** The variable that the value came from; null for a value in the file. */
  readonly env: string | null;
  /** The key that was probably meant. */
  readonly suggestion: string | null;
}

/** An invalid config; its detail has a line for each problem. */
export class ConfigError extends MillraceError {
  readonly problems: readonly ConfigProblem[];

  constructor(
    code: 'config_invalid' | 'secret_missing' | 'sink_module_invalid',
    problems: readonly ConfigProblem[],
  ) {
    super(code, problems.map(lineOf).join('\n'));
    this.problems = problems;
  }
}

export function locate(source: Document, problem: Problem): ConfigProblem {
  const { path, message, env = null, suggestion = null } = problem;
  const at = source.locate(path);
  return { key: keyOf(path), message, file: source.file, ...at, env, suggestion };
}

/** `file:line:column: key: message`, or `VARIABLE (key): message` */
export function lineOf({ key, message, file, line, column, env }: ConfigProblem): string {
  if (env !== null) return `${env} (${key}): ${message}`;
  const place = line === null ? file : `${file}:${line}:${column}`;
  return `${place}: ${key === '' ? '' : `${key}: `}${message}`;
}

/** A parsed file with the position of each value. */
export interface Document extends YamlText {
  /** Its name in messages. */
  readonly file: string;
}

/**
 * Parses YAML 1.2; duplicate keys are errors.
 * @param file its name in messages
 * @throws MillraceError config_invalid with a line for each syntax error
 */
export function parseYaml(text: string, file: string): Document {
  try {
    return { ...parseYamlText(text), file };
  } catch (error) {
    if (!(error instanceof YamlFault)) throw error;
    const lines = error.faults.map((fault) => `${file}:${/^\d/.test(fault) ? '' : ' '}${fault}`);
    throw new MillraceError('config_invalid', lines.join('\n'), { cause: error });
  }
}
