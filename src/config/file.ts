import { readFileSync } from 'node:fs';
import { messageOf, MillraceError } from '../core/errors.ts';
import { isMissing } from '../lib/durable.ts';
import type { Environment } from './paths.ts';

const DEFAULT_FILE = 'config/millrace.yaml';

export interface FileOptions {
  /** Path of the file; else MILLRACE_CONFIG, else config/millrace.yaml. */
  readonly file?: string | undefined;
  readonly env: Environment;
}

/** No file is named, and there is none at the usual place. */
export class NoConfig extends MillraceError {}

export function fileOf({ file, env }: FileOptions): string {
  return file ?? (env['MILLRACE_CONFIG'] || DEFAULT_FILE);
}

/** The text of the config. @throws NoConfig; MillraceError config_missing for any other file that cannot be read */
export function readText(options: FileOptions): string {
  const file = fileOf(options);
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const isNamed = options.file !== undefined || Boolean(options.env['MILLRACE_CONFIG']);
    const isNone = !isNamed && isMissing(cause);
    const what = isNone ? 'make one with `millrace init`, or name yours' : 'mend that, or name another';
    const advice = `${what} with --config FILE or MILLRACE_CONFIG`;
    const Failure = isNone ? NoConfig : MillraceError;
    throw new Failure('config_missing', `${file}: ${messageOf(cause)}; ${advice}`, { cause });
  }
}
