import { describe, expect, it } from 'vitest';
import { awkwardBodies, contractEvent } from '../../src/sinks/contract-events.ts';
import { deliver, filesSink, signal, tempFolder } from '../sinks/support.ts';
import { batchOf, writeFiles } from '../support/archives.ts';
import { queryDuckdb } from '../support/duckdb.ts';

describe('DuckDB reads an archive', () => {
  it.each(['none', 'gzip', 'zstd'])('%s, with its Hive folders, without options', async (compress) => {
    const path = tempFolder();
    const partitionBy = ['date', 'hour', 'type', 'team'];
    const { sink } = filesSink(path, { compress, partitionBy, rotate: { bytes: 1024 } });
    await sink.open();
    await sink.send(deliver(1, 20), signal);
    await sink.send(deliver(21, 20), signal);
    await sink.send(deliver(41, 5, { type: 'labtest/Order.created', team: null }, 'labs'), signal);
    await sink.close(signal);
    await sink.open();
    await sink.send(deliver(46, 5), signal);
    const rows = await queryDuckdb(
      `SELECT dt, hour, type, event_type, team, team_id, count(*)::INT FROM read_json('${path}/**/*.ndjson*')
       GROUP BY ALL ORDER BY 7`,
    );
    expect(rows).toEqual([
      ['2026-11-21', '03', 'labtest/Order.created', 'labtest/Order.created', null, null, 5],
      ['2026-11-21', '03', 'daily.data.meal.created', 'daily.data.meal.created', 'team-1', 'team-1', 40],
    ]);
    await sink.close(signal);
  });

  it('fault 25: awkward bodies and ids do not make a file unreadable', async () => {
    const path = tempFolder();
    const bodies = awkwardBodies();
    const events = bodies.map((body, i) => contractEvent(i + 1, { body, user: `\ud800\r\n"\\ ${i}` }));
    const stray = { event: contractEvent(99, { type: '../x\ud800' }), destination: '../../y' };
    await writeFiles(path, [batchOf(...events), [stray]], { options: { partitionBy: ['type'] } });
    for (const columns of ['', `, columns = {id: 'VARCHAR', user_id: 'VARCHAR', event: 'JSON'}`])
      expect(
        await queryDuckdb(`SELECT count(*)::INT FROM read_json('${path}/**/*.ndjson*'${columns})`),
      ).toEqual([[bodies.length + 1]]);
  });
});
