import { join, sep } from 'node:path';
import type { Io } from './io.ts';

/** What a person in `folder` types to start this program, as it was started itself. */
export function programName(folder: string, io: Io): string {
  const script = io.env['npm_lifecycle_event'];
  if (script === 'millrace' || script === 'start') return 'npm run --silent millrace --';
  const started = process.argv[1] ?? '';
  const isLocal =
    started.startsWith(join(folder, 'node_modules', sep)) || started.includes(`${sep}_npx${sep}`);
  return isLocal ? 'npx millrace' : 'millrace';
}
