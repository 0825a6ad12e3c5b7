import { writeFileSync } from 'node:fs';
import { request } from 'undici';
import { ServeProcess } from '../support/serve-process.ts';
import { signed, type Sent } from './history.ts';
import type { Recovered } from './recover.ts';

/** The same as `recover`, by the whole program: `millrace serve` in a process of its own, which is sent the events. */
export async function serveOn(
  file: string,
  text: string,
  again: readonly Sent[],
  fresh: readonly Sent[],
): Promise<Recovered> {
  writeFileSync(file, text);
  const process = new ServeProcess(file);
  try {
    await process.listening();
    const answers = new Map<string, string>();
    for (const { id, body } of [...again, ...fresh]) {
      const options = { method: 'POST', headers: signed(id, body), body } as const;
      const { body: answer } = await request(process.url, options);
      answers.set(id, ((await answer.json()) as { status: string }).status);
    }
    // What was asked for is due some seconds later; what has begun continues at once, and this waits for it.
    await post(process, 'erasures/run');
    await process.drained();
    const list = await request(`${process.adminUrl}/api/quarantine?limit=100000`, {
      headers: process.authorization,
    });
    const quarantined = new Set(((await list.body.json()) as { id: string }[]).map(({ id }) => id));
    const { code } = await process.kill('SIGTERM');
    if (code !== 0) throw new Error(`serve ended with ${code}:\n${process.stderr}`);
    return { answers, quarantined };
  } finally {
    await process.kill('SIGKILL');
  }
}

async function post(process: ServeProcess, path: string): Promise<void> {
  const headers = { 'content-type': 'application/json', ...process.authorization };
  const { statusCode, body } = await request(`${process.adminUrl}/api/${path}`, {
    method: 'POST',
    headers,
    body: '{}',
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${path}: ${statusCode} ${text}`);
}
