import { DuckDBInstance } from '@duckdb/node-api';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';

import { messageOf } from '../../src/core/errors.ts';
import type { Life } from './life.ts';
import type { Place, World } from './world.ts';

// What is right, and no code of the product with it: the sender's lists against files, targets, tables and what commands say.

/** Everything that is not as it has to be, in words. To be asked when all is delivered; ends the receiver. */
export async function account(life: Life): Promise<readonly string[]> {
  const { world, targets } = life;
  const wrong = [...life.wrong, ...targets.wrong.map((id) => `other bytes of ${id} came to a target`)];
  const reconciled = await life.run('reconcile', '--json');
  if (reconciled.code !== 0) wrong.push(`reconcile ended with ${reconciled.code}: ${reconciled.stdout}`);
  const { stdout: quarantined } = await life.run('quarantine', 'list', '--json', '--limit', '1000000');
  await life.end();
  for (const place of ['archive', 'labs'] as const) {
    const { code, stdout } = await life.run('archive', 'verify', world.at(place));
    if (code !== 0) wrong.push(`archive verify ended with ${code}: ${stdout}`);
  }
  const files = { archive: idsIn(world, 'archive', wrong), labs: idsIn(world, 'labs', wrong) };
  const has = (place: Place, id: string): boolean =>
    place === 'archive' || place === 'labs' ? files[place].has(id) : targets.had[place].has(id);
  for (const [id, posted] of world.posted) {
    if (posted.to === null || world.erased.has(posted.user)) continue;
    if (!posted.isFit) {
      if (!quarantined.includes(id)) wrong.push(`${id} is not in quarantine`);
      continue;
    }
    for (const place of world.due(posted)) if (!has(place, id)) wrong.push(`${id} is not at ${place}`);
  }
  await life.work('load', false);
  await life.work('export', false);
  const { code, stderr } = await life.run('replay', world.at('archive'), '--to', 'replayed');
  if (code !== 0) wrong.push(`replay ended with ${code}: ${stderr}`);
  const copies = {
    database: await rows(world.at('rows.duckdb'), 'SELECT _event_id FROM events', wrong),
    export: await rows(
      ':memory:',
      `SELECT _event_id FROM read_parquet('${world.at('rows')}/events/**/*.parquet')`,
      wrong,
    ),
    replay: [...targets.had.replayed],
  };
  for (const [name, ids] of Object.entries(copies)) wrong.push(...differing(name, ids, files.archive));
  return [...wrong, ...leftOf(world)];
}

/** The ids in an archive's finished files. */
function idsIn(world: World, place: 'archive' | 'labs', wrong: string[]): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const name of readdirSync(world.at(place), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ndjson.gz') || basename(name).startsWith('_')) continue;
    const lines = gunzipSync(readFileSync(join(world.at(place), name)))
      .toString()
      .split('\n');
    for (const line of lines.slice(0, -1)) {
      const { id } = JSON.parse(line) as { id: string };
      const body = world.bodies.get(id);
      if (body === undefined || !line.includes(body.toString()))
        wrong.push(`other bytes of ${id} in ${name}`);
      ids.add(id);
    }
  }
  return ids;
}

async function rows(database: string, sql: string, wrong: string[]): Promise<string[]> {
  const instance = await DuckDBInstance.create(database);
  const connection = await instance.connect();
  try {
    return (await connection.runAndReadAll(sql)).getRowsJson().map(([id]) => id as string);
  } catch (error) {
    wrong.push(messageOf(error));
    return [];
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** Of what is to hold each id once. */
function differing(name: string, ids: readonly string[], wanted: ReadonlySet<string>): string[] {
  const found = new Set(ids);
  const missing = [...wanted.difference(found)];
  const extra = [...found.difference(wanted)];
  if (missing.length + extra.length === 0 && ids.length === found.size) return [];
  const twice = ids.length - found.size;
  return [
    `${name}: ${missing.length} missing (${missing[0]}), ${extra.length} too many (${extra[0]}), ${twice} twice`,
  ];
}

/** Files that name an erased user. A database keeps the bytes of deleted rows until it writes over them. */
function leftOf({ folder, erased }: World): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.flatMap((name) => {
    const path = join(folder, name);
    if (name.startsWith('rows.duckdb') || !statSync(path).isFile()) return [];
    const bytes = readFileSync(path);
    return [...erased].flatMap((user) => (bytes.includes(user) ? [`${user} is erased, and in ${name}`] : []));
  });
}
