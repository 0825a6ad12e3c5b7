import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll } from 'vitest';
import { firstLack, lacksProgram, lacksWorking, type Lack } from '../../support/requirements.ts';

const SCRIPT = join(import.meta.dirname, 'questions.py');

const PYTHON = process.env['MILLRACE_TEST_PYTHON'] ?? 'python3';

/** Why what deltalake makes of a table cannot be asked here, or null. */
export function lacksDeltalake(): Lack {
  return firstLack(
    PYTHON.includes('/') ? null : lacksProgram(PYTHON),
    lacksWorking('deltalake (pip install deltalake pyarrow)', PYTHON, ['-c', 'import deltalake, pyarrow']),
  );
}

/** DuckDB's delta extension for this DuckDB, as Python has it installed beside; null when it has not. */
export function duckdbExtension(version: string): string | null {
  const ask = 'import duckdb_extension_delta as d; print(d.__path__[0])';
  const { status, stdout } = spawnSync(PYTHON, ['-c', ask], { encoding: 'utf8' });
  const file = join(stdout.trim(), `extensions/${version}/delta.duckdb_extension`);
  return status === 0 && existsSync(file) ? file : null;
}

export interface TableFacts {
  readonly version: number;
  readonly rows: number;
  readonly files: readonly string[];
  readonly types: Readonly<Record<string, string>>;
  readonly partitions: readonly string[];
  readonly protocol: readonly number[];
}

type Ask = <T = unknown>(kind: string, path: string, more?: object) => Promise<T>;

/** Starts Python once for a file of tests. */
export function deltalake(): Ask {
  let running: { ask: (line: string) => Promise<string>; end: () => void } | null = null;
  afterAll(() => running?.end());
  return async <T>(kind: string, path: string, more: object = {}) => {
    running ??= start();
    const answer = JSON.parse(await running.ask(JSON.stringify({ kind, path, ...more }))) as T & {
      error?: string;
    };
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer;
  };
}

function start() {
  const child = spawn(PYTHON, [SCRIPT], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    ask: async (line: string) => {
      child.stdin.write(`${line}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error('python has ended');
      return value;
    },
    end: () => void child.stdin.end(),
  };
}
