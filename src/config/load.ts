import { readFileSync } from 'node:fs';
import { MillraceError, messageOf } from '../core/errors.ts';
import { assemble } from './assemble.ts';
import type { LoadedConfig } from './config.ts';
import { parseYaml } from './document.ts';
import type { Environment, ScalarProblem } from './parse-scalars.ts';
import { keyOf, within, type Problem } from './paths.ts';
import { straySettings } from './stray.ts';
import { substitute } from './substitute.ts';

const DEFAULT_FILE = 'config/millrace.yaml';

export interface LoadOptions {
  /** Path of the file; else MILLRACE_CONFIG, else config/millrace.yaml. */
  readonly file?: string | undefined;
  readonly env: Environment;
  /**
   * For commands that only look: a `${…}` that cannot be resolved is a warning instead of an error. A setting or secret
   * is then left out; sinks and routes keep the text as it stands.
   */
  readonly lenient?: boolean;
}

/**
 * Reads the config: environment over file over defaults. Nothing else in the program reads the file or the environment.
 * @throws MillraceError config_missing; config_invalid with every problem, a line each (`file:line:column: key: …`);
 *   secret_missing when the only thing wrong is that no signing secret can be resolved.
 */
export function loadConfig(options: LoadOptions): LoadedConfig {
  const file = options.file ?? (options.env['MILLRACE_CONFIG'] || DEFAULT_FILE);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const asked = options.file !== undefined || Boolean(options.env['MILLRACE_CONFIG']);
    const advice = asked ? '' : '; name yours with --config FILE or MILLRACE_CONFIG';
    throw new MillraceError('config_missing', `${file}: ${messageOf(error)}${advice}`, { cause: error });
  }
  return parseConfig(text, { ...options, file });
}

/** The same for a text that has been read already; `file` is its name in messages. */
export function parseConfig(text: string, options: LoadOptions & { readonly file: string }): LoadedConfig {
  const { file, env, lenient = false } = options;
  const source = parseYaml(text, file);
  const { unset, ...document } = substitute(source.value, env, (path) => readFileSync(path, 'utf8'));
  const { config, scalarProblems, problems, warnings } = assemble(document.value, env, unset);

  const describe = ({ path, message }: Problem): string => {
    const key = keyOf(path);
    return `${source.locate(path)}: ${key === '' ? '' : `${key}: `}${message}`;
  };
  const describeScalar = (problem: ScalarProblem): string =>
    problem.env === null ? describe(problem) : `${problem.env} (${keyOf(problem.path)}): ${problem.message}`;
  const wrong = [...scalarProblems.map(describeScalar), ...problems.map(describe)];
  const holes = unset.map(describe);
  if (!lenient && holes.length > 0) {
    const onlySecrets = wrong.length === 0 && unset.every(({ path }) => within(path, ['signing', 'secrets']));
    throw new MillraceError(
      onlySecrets ? 'secret_missing' : 'config_invalid',
      [...holes, ...wrong].join('\n'),
    );
  }
  if (wrong.length > 0) throw new MillraceError('config_invalid', wrong.join('\n'));
  return {
    config,
    file,
    warnings: [...holes, ...warnings.map(describe), ...straySettings(env, document.variables)],
    substituted: document.substituted,
    unset: unset.map(({ path }) => keyOf(path)),
  };
}
