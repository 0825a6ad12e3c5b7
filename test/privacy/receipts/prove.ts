import { millrace, type RunOptions } from '../../support/millrace.ts';

export interface Proved {
  readonly code: number | null;
  readonly stderr: string;
  readonly said: Readonly<Record<string, unknown>>;
}

/**
 * What `archive prove` says of an archive.
 * @param args name the log, as `--config` or `--log` do
 */
export async function prove(
  archive: string,
  args: readonly string[],
  env: RunOptions['env'] = {},
): Promise<Proved> {
  const { code, stdout, stderr } = await millrace(['archive', 'prove', archive, ...args, '--json'], { env });
  // One that could not begin says nothing.
  if (stdout === '') throw new Error(`archive prove ended with ${code}: ${stderr}`);
  return { code, stderr, said: JSON.parse(stdout) as Record<string, unknown> };
}
