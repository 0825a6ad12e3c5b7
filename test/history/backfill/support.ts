import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { startSandbox, type Sandbox } from '../../../src/sandbox/start.ts';
import { millrace, type Ended } from '../../support/millrace.ts';
import { jsonLines } from '../../support/json-lines.ts';

export type SandboxOptions = NonNullable<Parameters<typeof startSandbox>[0]>;

export interface Range {
  readonly since: string;
  readonly until: string;
  /** Default: all. */
  readonly provider?: string;
}

/** Ten days of data, two meals a day, unless the options say otherwise. */
export async function sandbox(options: SandboxOptions): Promise<Sandbox> {
  const started = await startSandbox({
    host: '127.0.0.1',
    seed: 'made-up',
    days: 10,
    mealsPerDay: 2,
    ...options,
  });
  onTestFinished(() => started.stop());
  return started;
}

export function environment({ url, apiKey }: Pick<Sandbox, 'url' | 'apiKey'>): Record<string, string> {
  return { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: apiKey };
}

export function backfill(service: Sandbox, out: string, ...args: string[]): Promise<Ended> {
  return millrace(['backfill', '--out', out, '--json', ...args], {
    env: environment(service),
    cwd: out,
  });
}

export function lines(path: string): Record<string, unknown>[] {
  return jsonLines(readFileSync(path));
}

/** Number of tasks whose rows are on disk, by the state folder of a backfill. */
export function tasksIn(work: string): number {
  const names = existsSync(work) ? readdirSync(work, { recursive: true, encoding: 'utf8' }) : [];
  const texts = names
    .filter((name) => name.includes('segment-'))
    .map((name) => readFileSync(join(work, name), 'utf8'));
  return texts.join('').match(/^\{"task":\d+,.*"result":\{.*\}$/gm)?.length ?? 0;
}

export const lastLine = ({ stdout }: Ended): Record<string, unknown> =>
  JSON.parse(stdout.trim().split('\n').at(-1) ?? '{}') as Record<string, unknown>;

/** Ids of the meals the service has of these users, or of all, in the range; asked for in plain HTTP. Sorted. */
export async function mealIds(
  service: Sandbox,
  { since, until, provider }: Range,
  users?: readonly string[],
): Promise<string[]> {
  const { url, apiKey, state, teamId } = service;
  const only = provider === undefined ? '' : `&provider=${provider}`;
  const ids: string[] = [];
  for (const user of users ?? state.users.list(teamId).map(({ id }) => id)) {
    const answer = await fetch(
      `${url}/v2/summary/meal/${user}?start_date=${since}&end_date=${until}${only}`,
      {
        headers: { 'x-service-api-key': apiKey },
      },
    );
    const { meals } = (await answer.json()) as { meals: { id: string }[] };
    ids.push(...meals.map(({ id }) => id));
  }
  return ids.toSorted();
}

/** Ids of the rows of a file of meals. Sorted. */
export function rowIds(path: string): string[] {
  return lines(path)
    .map(({ id }) => String(id))
    .toSorted();
}
