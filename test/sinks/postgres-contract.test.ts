import { afterAll, beforeAll, describe } from 'vitest';
import { parseOptions } from '../../src/sinks/postgres/config.ts';
import { createSink } from '../../src/sinks/postgres/sink.ts';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import { skipped } from '../support/requirements.ts';
import { runContract } from './run-contract.ts';
import { makeContext, signal } from './support.ts';

const lack = lacksPostgres();

/** What arrived, in the order in which it lies in the table; values as hex, so that no text stands in the way. */
const ARRIVED = `
  SELECT encode(convert_to(id, 'UTF8'), 'hex'),
    encode(coalesce(decode(body_base64, 'base64'), convert_to(event::text, 'UTF8')), 'hex')
  FROM events ORDER BY ctid`;

describe.skipIf(lack !== null)(`postgres sink: the sink contract${skipped(lack)}`, async () => {
  let server: Postgres | null = null;
  const running = (): Postgres => (server ??= Postgres.start());
  beforeAll(() => void running());
  afterAll(() => running().stop());
  let schemas = 0;
  await runContract(() => {
    const schema = `contract_${(schemas += 1)}`;
    const connectionString = lack === null ? running().url : 'postgres://nobody@127.0.0.1/none';
    const options = parseOptions({ connectionString, schema, tables: ['events', 'meals'] });
    const sink = createSink(options, makeContext());
    return Promise.resolve({
      sink,
      destinations: [],
      arrived: () =>
        Promise.resolve(
          running()
            .sql(`SET search_path TO ${schema};${ARRIVED}`)
            .split('\n')
            .filter((line) => line !== '')
            .map((line) => {
              const [id = '', body = ''] = line.split('|').map((hex) => Buffer.from(hex, 'hex'));
              return { id: id.toString(), destination: null, body: Buffer.from(body) };
            }),
        ),
      outage: {
        begin: () => Promise.resolve(running().down()),
        end: () => Promise.resolve(running().up()),
      },
      dispose: () => sink.close(signal),
    });
  });
});
