import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import { loadSinkModule, SINK_TYPES } from '../../src/sinks/registry.ts';
import { tempFolder } from './support.ts';

describe('loadSinkModule', () => {
  it.each(SINK_TYPES)('knows %s', async (type) => {
    const module = await loadSinkModule(type, '/');
    expect(Object.keys(module)).toEqual(
      expect.arrayContaining(['describe', 'optionsSchema', 'parseOptions']),
    );
    expect(await module.load()).toHaveProperty('createSink');
  });

  it('takes named or default exports, plain or TypeScript, relative or absolute', async () => {
    const folder = tempFolder();
    const names = { 'own.js': 'export ', 'own.ts': 'export ' } as const;
    for (const [name, keyword] of Object.entries(names)) {
      const types = name.endsWith('ts') ? ': unknown' : '';
      writeFileSync(
        join(folder, name),
        `${keyword}function parseOptions(o${types}) { return o; }\n${keyword}function createSink() { return {}; }\n`,
      );
      await expect(loadSinkModule(`./${name}`, folder)).resolves.toBeDefined();
      await expect(loadSinkModule(join(folder, name), '/')).resolves.toBeDefined();
    }
    writeFileSync(join(folder, 'default.mjs'), 'export default { parseOptions() {}, createSink() {} };');
    const module = await loadSinkModule('./default.mjs', folder);
    expect(await module.load()).toHaveProperty('createSink');
  });

  it('names the file and what is missing', async () => {
    const folder = tempFolder();
    const failure = async (type: string, text?: string): Promise<string> => {
      if (text !== undefined) writeFileSync(join(folder, type), text);
      const error: unknown = await loadSinkModule(type, folder).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'sink_module_invalid' });
      return error instanceof MillraceError ? error.detail : '';
    };
    expect(await failure('rabbit')).toMatch(
      /"rabbit" is neither a built-in type \(files, stdout.*\) nor a path/,
    );
    expect(await failure('toString')).toMatch(/neither/);
    expect(await failure('./gone.js')).toBe(`${join(folder, 'gone.js')} does not exist`);
    expect(await failure('./half.mjs', 'export function createSink() {}')).toBe(
      `${join(folder, 'half.mjs')} does not export the function parseOptions`,
    );
    expect(await failure('./none.mjs', 'export const x = 1;')).toMatch(/parseOptions and createSink$/);
    expect(await failure('./broken.mjs', 'throw new Error("no driver");')).toMatch(
      /broken.mjs cannot be loaded: no driver$/,
    );
  });
});
