import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { childEnvironment, millraceProcess, ROOT, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { packProject } from '../support/packed.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { shared, type Server } from '../support/server.ts';
import { postSigned } from '../support/signed-events.ts';
import { printing, saying } from '../support/place.ts';

const run = promisify(execFile);

/**
 * Lays the package out as an install does, with this checkout's own dependencies: the registry takes no part in it.
 * @param dependencies beside it in `node_modules`
 * @returns the folder that holds its `node_modules`
 */
async function install(
  tarball: string,
  { to, dependencies }: { to: string; dependencies: readonly string[] },
): Promise<string> {
  const modules = join(to, 'node_modules');
  await mkdir(modules, { recursive: true });
  await writeFile(join(to, 'package.json'), '{"dependencies":{"millrace":"*"}}');
  await run('tar', ['-xzf', tarball, '-C', modules]);
  await rename(join(modules, 'package'), join(modules, 'millrace'));
  for (const name of dependencies) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  }
  return to;
}

/** What `npm install --omit=optional` would put beside the package. */
async function withoutOptional(): Promise<string[]> {
  const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean; devOptional?: boolean }>;
  };
  return Object.entries(lock.packages).flatMap(([path, { dev, optional, devOptional }]) => {
    const [, name] = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? [];
    return name === undefined || dev || optional || devOptional ? [] : [name];
  });
}

const lack = lacksProgram('npm') ?? lacksProgram('tar');
let folder = '';
let installed = '';
let filesOnly = '';
let tarball: Server;
beforeAll(async () => {
  if (lack !== null) return;
  folder = await mkdtemp(join(tmpdir(), 'millrace-packed-'));
  tarball = await shared('package', packProject);
  const all = await readdir(join(ROOT, 'node_modules'));
  const dependencies = all.filter((name) => !name.startsWith('.'));
  installed = await install(tarball.url, { to: join(folder, 'installed'), dependencies });
  filesOnly = await install(tarball.url, {
    to: join(folder, 'files-only'),
    dependencies: await withoutOptional(),
  });
});
afterAll(async () => {
  await tarball.stop();
  await rm(folder, { recursive: true, force: true });
});

const programIn = (place: string) =>
  [process.execPath, join(place, 'node_modules/millrace/dist/main.js')] as const;

test.skipIf(lack !== null)(
  `without optional packages it runs: --help, demo, serve${skipped(lack)}`,
  async () => {
    const program = programIn(filesOnly);
    const cwd = await temporaryFolder();
    const help = await millraceProcess(['--help'], { program, cwd });
    expect(help).toMatchObject(printing(0, 'Usage: millrace'));
    const demo = await millraceProcess(['demo', '--events', '50', '--json'], {
      program,
      cwd,
      env: { TMPDIR: cwd },
    });
    expect({ code: demo.code }, `stderr: ${demo.stderr}`).toEqual({ code: 0 });
    expect(JSON.parse(demo.stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
      ok: true,
      accepted: 50,
    });

    const receiver = await ReceiverProcess.start(writeConfig(cwd), { program, cwd });
    expect((await postSigned(receiver.url)).status).toBe(202);
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  },
);

/** The exact versions, for the command that installs them. */
const { optionalDependencies: versions } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  optionalDependencies: Record<string, string>;
};

test.skipIf(lack !== null)(
  `a config that needs packages that are not installed is refused, with the command that installs them${skipped(lack)}`,
  async () => {
    const cwd = await temporaryFolder();
    const file = join(cwd, 'millrace.yaml');
    await writeFile(file, VENDORS);
    const checked = await millraceProcess(['check', '--config', file], {
      program: programIn(filesOnly),
      cwd,
    });
    expect(checked.code).toBe(2);
    const needed = [
      ['sinks.hub', '@azure/event-hubs'],
      ['sinks.topic', '@google-cloud/pubsub'],
      ['sinks.rows', 'pg', 'pg-copy-streams'],
      ['sinks.log', '@platformatic/kafka'],
      ['sinks.lake', '@aws-sdk/client-s3'],
      ['sinks.blobs', '@azure/storage-blob', '@azure/identity'],
      ['sinks.buckets', 'google-auth-library'],
      [
        'sources.in',
        '@azure/event-hubs',
        '@azure/identity',
        '@azure/storage-blob',
        '@azure/eventhubs-checkpointstore-blob',
      ],
    ];
    const lines = checked.stderr.trimEnd().split('\n');
    for (const [at, [key = '', ...names]] of needed.entries()) {
      expect(lines[at]).toContain(`${key}.type: needs ${names.join(', ')}, not installed`);
      expect(lines[at]?.endsWith(command(...names)), lines[at]).toBe(true);
    }
    expect(lines).toHaveLength(needed.length);
    for (const name of Object.keys(versions)) expect(checked.stderr).toContain(name);

    const to = 'postgres://unknown@127.0.0.1:9/none';
    const loaded = await millraceProcess(['load', cwd, '--to', to], { program: programIn(filesOnly), cwd });
    expect(loaded).toMatchObject(saying(2, command('pg', 'pg-copy-streams')));

    // As `npm install --global` leaves it: a folder of modules, and no package that they are for.
    const forAll = join(cwd, 'lib');
    await cp(filesOnly, forAll, { recursive: true });
    await rm(join(forAll, 'package.json'));
    for (const [target, lacking] of [
      ['duckdb:none.db', '@duckdb/node-api'],
      [`postgres://unknown@127.0.0.1:9/none`, '--omit=optional pg@'],
    ] as const)
      expect(
        await millraceProcess(['load', cwd, '--to', target], { program: programIn(forAll), cwd }),
      ).toMatchObject(saying(2, `npm install --global ${lacking}`));
  },
);

test.skipIf(lack !== null)(
  `a sink of a user's own can use the package's exports where only the running millrace has them${skipped(lack)}`,
  async () => {
    const cwd = await temporaryFolder();
    await writeFile(
      join(cwd, 'own.ts'),
      `import { DELIVERED, parseBytes, type Delivery } from 'millrace/sink';
       export const parseOptions = ({ most }: { most: string }) => ({ most: parseBytes(most) });
       export const createSink = ({ most }: { most: number }) => ({
         limits: { batchCount: 1, batchBytes: most, eventBytes: most, inFlight: 1, order: 'none', batchBy: 'mixed' },
         open: async () => {},
         send: async (batch: readonly Delivery[]) => batch.map(() => DELIVERED),
         close: async () => {},
       });`,
    );
    const own = writeConfig(cwd, {
      sinks: { own: { type: './own.ts', most: '1MiB' } },
      routes: [{ match: '*', to: ['own'] }],
    });
    const program = programIn(filesOnly);
    const receiver = await ReceiverProcess.start(own, { program, cwd });
    expect((await postSigned(receiver.url)).status).toBe(202);
    await receiver.drained();
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    // Any other package is as little there as before.
    await writeFile(join(cwd, 'own.ts'), `import 'millrace-not/sink'; import 'millrace/not-exported';`);
    expect(await millraceProcess(['check', '--config', own], { program, cwd })).toMatchObject(
      saying(2, /own\.ts cannot be loaded: Cannot find package 'millrace-not'/),
    );
  },
);

function command(...names: string[]): string {
  return `npm install --omit=optional ${names.map((name) => `${name}@${versions[name]}`).join(' ')}`;
}

/** A sink or source for each optional package. */
const VENDORS = `
signing: { secrets: [whsec_${Buffer.alloc(24).toString('base64')}] }
sinks:
  hub: { type: event-hubs, hub: events, connectionString: "Endpoint=sb://a.example/;SharedAccessKeyName=k;SharedAccessKey=aa==" }
  topic: { type: pubsub, project: acme-health, topic: events }
  rows: { type: postgres, connectionString: "postgres://a@localhost/b" }
  log: { type: kafka, brokers: [a.example:9092], topic: events }
  lake: { type: files, path: "s3://made-up/archive" }
  blobs: { type: files, path: "azblob://made-up/archive" }
  buckets: { type: files, path: "gs://made-up/archive" }
sources:
  in:
    type: event-hubs
    hub: events
    fullyQualifiedNamespace: a.example
    checkpoints: { type: blob-storage, container: checkpoints, accountUrl: "https://a.example" }
routes: [{ match: "*", to: [hub, topic, rows] }]
`;

/** Runs a module beside the installed package, and reads what it prints as JSON. */
async function runBeside(text: string): Promise<unknown> {
  const file = join(installed, 'run.mjs');
  await writeFile(file, text);
  const { stdout } = await run(process.execPath, [file], { cwd: installed, env: childEnvironment() });
  return JSON.parse(stdout);
}

async function packagesIn(file: string): Promise<Record<string, { version: string }>> {
  return (JSON.parse(await readFile(file, 'utf8')) as { packages: Record<string, { version: string }> })
    .packages;
}

test.skipIf(lack !== null)(
  `it pins the versions that were tested, and no package of development${skipped(lack)}`,
  async () => {
    const locked = await packagesIn(join(ROOT, 'package-lock.json'));
    const pinned = await packagesIn(join(installed, 'node_modules/millrace/npm-shrinkwrap.json'));
    const differing = Object.keys(pinned).filter((path) => pinned[path]?.version !== locked[path]?.version);
    expect(differing).toEqual([]);
    expect(Object.keys(pinned)).toEqual(expect.arrayContaining(['node_modules/express', 'node_modules/pg']));
    expect(Object.keys(pinned)).not.toContain('node_modules/vitest');
  },
);

test.skipIf(lack !== null)(
  `each export can be imported, nothing else can, and what was signed verifies${skipped(lack)}`,
  async () => {
    const found = await runBeside(`
      const names = ['sink', 'sink-contract', 'verify', 'archive', 'events'];
      const modules = await Promise.all(names.map((name) => import('millrace/' + name)));
      const keys = Object.fromEntries(names.map((name, i) => [name, Object.keys(modules[i])]));
      const { createVerifier, signStandardWebhooks } = modules[2];
      const secret = 'whsec_' + Buffer.alloc(32, 7).toString('base64');
      const verifier = createVerifier({ scheme: 'standard-webhooks', secrets: [secret], tolerance: 1000 });
      const headers = signStandardWebhooks(secret, 'msg_1', 5000, Buffer.from('{}'));
      const [same, changed] = ['{}', '[]'].map((body) => verifier.verify(headers, Buffer.from(body), 5000));
      const other = await import('millrace/dist/app/app.js').catch((error) => error.code);
      console.log(JSON.stringify({ keys, id: same.id, ok: [same.ok, changed.ok], other }));
    `);
    expect(found).toEqual({
      keys: {
        sink: ['DELIVERED', 'parseBytes', 'parseDuration'],
        'sink-contract': ['sinkContract'],
        verify: ['SCHEMES', 'createVerifier', 'signStandardWebhooks'],
        archive: ['readArchive'],
        events: [],
      },
      id: 'msg_1',
      ok: [true, false],
      other: 'ERR_PACKAGE_PATH_NOT_EXPORTED',
    });
  },
);

test.skipIf(lack !== null)(
  `a sink written in TypeScript compiles against the package and passes the contract${skipped(lack)}`,
  async () => {
    const example = 'node_modules/millrace/config/examples/own-sink.js';
    await cp(join(ROOT, 'test/process/typed-sink.ts'), join(installed, 'typed-sink.ts'));
    await cp(join(installed, example), join(installed, 'own-sink.js'));
    await writeFile(join(installed, 'package.json'), JSON.stringify({ type: 'module' }));
    const compilerOptions = {
      strict: true,
      module: 'nodenext',
      target: 'es2024',
      types: ['node'],
      allowJs: true,
      checkJs: true,
      skipLibCheck: false,
      outDir: 'built',
    };
    const files = ['typed-sink.ts', 'own-sink.js'];
    await writeFile(join(installed, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const compiled = await run(process.execPath, [tsc], { cwd: installed }).catch((error: unknown) => error);
    expect(compiled).toMatchObject({ stdout: '' });
    const passed = await runBeside(`
      import { runContract } from './built/typed-sink.js';
      console.log(JSON.stringify(await runContract()));
    `);
    expect(passed).toContain('passes bodies on byte for byte');
  },
);
