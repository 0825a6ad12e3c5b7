import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { figures } from './figures.ts';

// npm run figures

const folder = await mkdtemp(join(tmpdir(), 'millrace-figures-'));
try {
  for (const [name, value] of Object.entries(await figures(folder)))
    process.stdout.write(`${name.padEnd(56)}${String(value).padStart(8)}\n`);
} finally {
  await rm(folder, { recursive: true, force: true });
}
