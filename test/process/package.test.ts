import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { childEnvironment, millraceProcess, ROOT, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';

vi.setConfig({ testTimeout: 120_000 });

const run = promisify(execFile);

/**
 * Packs the project and lays the package out as an install does, with this checkout's own dependencies: the registry
 * takes no part in it. Packed from a copy, so that nobody's `dist` is in the way.
 * @returns the folder that holds its `node_modules`
 */
async function installPacked(folder: string): Promise<string> {
  const copy = join(folder, 'copy');
  await mkdir(copy);
  for (const name of await readdir(ROOT)) {
    if (['.git', 'node_modules', 'dist', 'data', 'test'].includes(name)) continue;
    await cp(join(ROOT, name), join(copy, name), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: copy,
    env: childEnvironment({ npm_config_offline: 'true', npm_config_update_notifier: 'false' }),
  });
  const installed = join(folder, 'installed');
  const modules = join(installed, 'node_modules');
  await mkdir(modules, { recursive: true });
  await run('tar', ['-xzf', join(folder, packedName(stdout)), '-C', modules]);
  await run('mv', [join(modules, 'package'), join(modules, 'millrace')]);
  for (const name of await readdir(join(ROOT, 'node_modules'))) {
    if (!name.startsWith('.')) await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  }
  return installed;
}

/** npm prints what the prepack script prints, and then its JSON. */
function packedName(output: string): string {
  const found = /"filename":\s*"([^"]+\.tgz)"/.exec(output)?.[1];
  if (found === undefined) throw new Error(`npm pack named no file:\n${output}`);
  return found;
}

const lack = lacksProgram('npm') ?? lacksProgram('tar');
let folder = '';
let installed = '';
beforeAll(async () => {
  if (lack !== null) return;
  folder = await mkdtemp(join(tmpdir(), 'millrace-packed-'));
  installed = await installPacked(folder);
}, 300_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

test.skipIf(lack !== null)(`the packed package runs: --help, demo, serve${skipped(lack)}`, async () => {
  const program = [process.execPath, join(installed, 'node_modules/millrace/dist/main.js')] as const;
  const cwd = await temporaryFolder();
  const help = await millraceProcess(['--help'], { program, cwd });
  expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage: millrace') });
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
});

/** Runs a module beside the installed package, and reads what it prints as JSON. */
async function runBeside(text: string): Promise<unknown> {
  const file = join(installed, 'run.mjs');
  await writeFile(file, text);
  const { stdout } = await run(process.execPath, [file], { cwd: installed, env: childEnvironment() });
  return JSON.parse(stdout);
}

test.skipIf(lack !== null)(`each export can be imported${skipped(lack)}`, async () => {
  const found = await runBeside(`
    const names = ['sink', 'sink-contract', 'verify', 'archive', 'events'];
    const modules = await Promise.all(names.map((name) => import('millrace/' + name)));
    console.log(JSON.stringify(Object.fromEntries(names.map((name, i) => [name, Object.keys(modules[i])]))));
  `);
  expect(found).toEqual({
    sink: ['DELIVERED', 'parseBytes', 'parseDuration'],
    'sink-contract': ['sinkContract'],
    verify: ['SCHEMES', 'createVerifier', 'signStandardWebhooks'],
    archive: ['readArchive'],
    events: [],
  });
});

test.skipIf(lack !== null)(`nothing else can be imported${skipped(lack)}`, async () => {
  const code = await runBeside(`
    const code = await import('millrace/dist/app.js').catch((error) => error.code);
    console.log(JSON.stringify(code));
  `);
  expect(code).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED');
});

test.skipIf(lack !== null)(`what was signed verifies, with the exports alone${skipped(lack)}`, async () => {
  const verified = await runBeside(`
    import { createVerifier, signStandardWebhooks } from 'millrace/verify';
    const secret = 'whsec_' + Buffer.alloc(32, 7).toString('base64');
    const verifier = createVerifier({ scheme: 'standard-webhooks', secrets: [secret], tolerance: 1000 });
    const body = Buffer.from('{}');
    const headers = signStandardWebhooks(secret, 'msg_1', 5000, body);
    const { ok, id } = verifier.verify(headers, body, 5000);
    console.log(JSON.stringify({ ok, id, changed: verifier.verify(headers, Buffer.from('[]'), 5000).ok }));
  `);
  expect(verified).toEqual({ ok: true, id: 'msg_1', changed: false });
});

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
