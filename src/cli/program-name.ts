import { join, sep } from 'node:path';
import type { Io } from './io.ts';

/** How to start this program in `folder`: in the way this process was started. */
export function programName(folder: string, io: Io): string {
  const script = io.env['npm_lifecycle_event'];
  if (script === 'millrace' || script === 'start') return 'npm run --silent millrace --';
  const started = process.argv[1] ?? '';
  const isLocal =
    started.startsWith(join(folder, 'node_modules', sep)) || started.includes(`${sep}_npx${sep}`);
  return isLocal ? 'npx millrace' : 'millrace';
}
