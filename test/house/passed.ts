import { readdirSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startSandbox } from '../../src/sandbox/start.ts';
import { millraceProcess, ROOT, SOURCE, writeConfig } from '../support/millrace.ts';
import { ServeProcess } from '../support/serve-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

/** A file of src that was loaded, and the functions with a name that ran in it. */
export interface Script {
  /** Below src. */
  readonly file: string;
  readonly ran: readonly string[];
  /** How often each of them ran. */
  readonly counts: ReadonlyMap<string, number>;
}

/** What V8 writes of its precise coverage. */
interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly { readonly count: number }[];
    }[];
  }[];
}

const SRC = `${pathToFileURL(join(ROOT, 'src')).href}/`;
const PRELOAD = join(import.meta.dirname, 'take-coverage.ts');

/** What one event runs from its POST to the file in the archive, in all threads of a receiver that has had some. */
export async function passedByAnEvent(folder: string): Promise<Script[]> {
  const [archive, coverage] = [join(folder, 'archive'), join(folder, 'coverage')];
  const files = { type: 'files', path: archive, rotate: { every: '1s' } };
  const receiver = new ServeProcess(writeConfig(folder, { sinks: { archive: files } }), {
    program: [process.execPath, '--import', PRELOAD, SOURCE],
    env: { NODE_V8_COVERAGE: coverage },
  });
  const archived = async (n: number): Promise<void> => {
    const { id, body } = madeUpEvent(n, 'daily.data.meal.created');
    await postSigned(receiver.url, body, { id });
    await until('a file in the archive', () => below(archive, '.ndjson.gz').length === n);
  };
  const taken = async (): Promise<string[]> => {
    const before = new Set(below(coverage, '.json'));
    receiver.signal('SIGUSR2');
    return until('the coverage of both threads', () => {
      const written = below(coverage, '.json').filter((name) => !before.has(name));
      return written.length >= 2 && written.every(isWhole) ? written : null;
    });
  };
  try {
    await receiver.listening();
    await archived(1);
    await archived(2);
    await taken();
    await archived(3);
    return (await taken()).flatMap(scriptsIn).filter(({ ran }) => ran.length > 0);
  } finally {
    await receiver.kill('SIGKILL');
  }
}

/** What the meal of one user runs on its way from the service to its row: what runs more often in a backfill of two. */
export async function passedByAMeal(folder: string): Promise<Script[]> {
  const [one = [], two = []] = await Promise.all(
    [1, 2].map((users) => backfillOf(join(folder, `${users}`), users)),
  );
  const before = new Map(one.map(({ file, counts }) => [file, counts]));
  return two
    .map(({ file, ran, counts }) => {
      const isMore = (name: string): boolean => (counts.get(name) ?? 0) > (before.get(file)?.get(name) ?? 0);
      return { file, counts, ran: ran.filter(isMore) };
    })
    .filter(({ ran }) => ran.length > 0);
}

/** @param users with a meal each */
async function backfillOf(folder: string, users: number): Promise<Script[]> {
  await mkdir(folder);
  const sandbox = await startSandbox({ port: 0, users, days: 1, mealsPerDay: 1, since: '2026-01-01' });
  try {
    const config = writeConfig(folder, { service: { baseUrl: sandbox.url, apiKey: sandbox.apiKey } });
    const range = ['--since', '2026-01-01', '--until', '2026-01-01', '--out', join(folder, 'out')];
    return await loadedBy(
      ['backfill', '--all-users', '--config', config, ...range],
      join(folder, 'coverage'),
    );
  } finally {
    await sandbox.stop();
  }
}

/** What `millrace check` of a short config loads and runs. */
export function loadedByCheck(folder: string): Promise<Script[]> {
  return loadedBy(['check', '--config', writeConfig(folder)], join(folder, 'coverage'));
}

async function loadedBy(command: readonly string[], coverage: string): Promise<Script[]> {
  const { code, stderr } = await millraceProcess(command, {
    program: [process.execPath, SOURCE],
    env: { NODE_V8_COVERAGE: coverage },
  });
  if (code !== 0) throw new Error(`millrace ${command.join(' ')} ended with ${code}: ${stderr}`);
  return below(coverage, '.json').flatMap(scriptsIn);
}

function scriptsIn(file: string): Script[] {
  const { result } = JSON.parse(readFileSync(file, 'utf8')) as Coverage;
  return result
    .filter(({ url }) => url.startsWith(SRC))
    .map(({ url, functions }) => {
      const counts = new Map<string, number>();
      for (const { functionName: name, ranges } of functions)
        if (name !== '') counts.set(name, (counts.get(name) ?? 0) + (ranges[0]?.count ?? 0));
      const ran = [...counts].flatMap(([name, count]) => (count > 0 ? [name] : []));
      return { file: url.slice(SRC.length), ran, counts };
    });
}

/** V8 writes it piece by piece. */
function isWhole(file: string): boolean {
  try {
    scriptsIn(file);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

function below(folder: string, ending: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith(ending))
      .map((name) => join(folder, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
