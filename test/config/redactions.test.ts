import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { printable } from '../../src/config/print.ts';
import { resolveText } from '../../src/config/load.ts';
import { leavingText } from '../../src/core/route.ts';

const BASE = {
  signing: { secrets: ['whsec_bWFkZS11cCBzZWNyZXQgb2YgdGhlIHRlc3RzIG9ubHk='] },
  sinks: {
    archive: { type: 'files', path: '/tmp/made-up/archive' },
    lake: { type: 'files', path: '/tmp/made-up/lake' },
    hubs: { type: 'stdout' },
    hooks: { type: 'http', url: 'https://example.com/', sign: 'original' },
  },
};

function resolved(routes: readonly object[], changes: object = {}) {
  return resolveText(JSON.stringify({ ...BASE, routes, ...changes }), { file: 'millrace.yaml', env: {} });
}

async function leaving(route: object): Promise<Record<string, string | null>> {
  const { config } = await resolved([{ match: '*', ...route }]);
  return Object.fromEntries((config.routes[0]?.to ?? []).map((target) => [target.sink, leavingText(target)]));
}

describe('for which target a redaction counts', () => {
  test('for each but the archives, which keep the original', async () => {
    const name = '/data/name as null';
    expect(await leaving({ to: ['hubs', 'archive'], redact: '/data/name' })).toEqual({
      hubs: name,
      archive: null,
    });
    expect(await leaving({ to: ['archive', 'lake'], redact: '/data/name' })).toEqual({
      archive: name,
      lake: name,
    });
  });

  test('an entry of its own says all about its target', async () => {
    const to = [{ target: 'lake', remove: '/data/name' }, { target: 'hubs' }, 'archive'];
    expect(await leaving({ to, redact: '/data/x' })).toEqual({
      lake: 'without /data/name',
      hubs: null,
      archive: null,
    });
    const only = { to: { target: 'hubs', only: [], redact: ['/data/a', '/data/b'], mask: '-' } };
    expect(await leaving(only)).toEqual({
      hubs: 'only /event_type, /team_id, /user_id, /client_user_id; /data/a, /data/b as "-"',
    });
  });

  test('is printed so that it can be read again', async () => {
    const first = await resolved([
      { match: 'a.', to: ['hubs', 'archive'], redact: '/data/name' },
      { match: '*', to: 'lake' },
    ]);
    const { routes } = printable(first, 'text', first.schemas) as { routes: object[] };
    const again = await resolved(routes);
    expect(again.config.routes).toEqual(first.config.routes);
    expect(stringify(routes)).toContain('target: hubs');
  });
});

describe('a redaction that cannot work is an error', () => {
  test.each<[string, object, RegExp]>([
    [
      'no slash',
      { to: 'hubs', redact: 'data.name' },
      /routes\[0\]\.redact\[0\].*"data\.name" must begin with a slash, such as "\/data\/name"/,
    ],
    [
      'in an entry',
      { to: [{ target: 'hubs', only: ['/a//b'] }] },
      /routes\[0\]\.to\[0\]\.only\[0\].*"\/a\/\/b" has an empty name.*write "\/a\/b"/,
    ],
    ['user', { to: 'hubs', redact: '/user_id' }, /names user_id, by which millrace routes/],
    ['type, by a wildcard', { to: 'hubs', remove: ['/*'] }, /names event_type/],
    [
      'user, at any depth',
      { to: 'hubs', redact: ['/**/user_id'] },
      /"\/\*\/\*\*\/user_id" names only what stands deeper/,
    ],
    ['all', { to: 'hubs', redact: '/**' }, /names event_type/],
    ['a mask alone', { to: 'hubs', mask: 'x' }, /routes\[0\]\.mask.*needs `redact` beside it/],
    ['none', { to: 'hubs', redact: [] }, /routes\[0\]\.redact.*at least one path/],
    ['a slip', { to: 'hubs', redcat: '/data/name' }, /redcat.*did you mean routes\[0\]\.redact/],
    ['an entry without target', { to: [{ redact: '/data/name' }] }, /routes\[0\]\.to\[0\]/],
    [
      'original signatures',
      { to: 'hooks', redact: '/data/name' },
      /routes\[0\]\.to\[0\].*sinks\.hooks\.sign/,
    ],
  ])('%s', async (_, route, message) => {
    await expect(resolved([{ match: '*', ...route }])).rejects.toThrow(message);
  });

  test('where bodies can be too deep, or are no JSON', async () => {
    const routes = [{ match: '*', to: 'hubs', redact: '/data/name' }];
    await expect(resolved(routes, { envelope: { maxDepth: 201 } })).rejects.toThrow(
      /envelope\.maxDepth.*at most 200/,
    );
    const { hubs, lake } = BASE.sinks;
    const aside = { acknowledge: 'delivered', quarantine: { to: 'hubs' }, sinks: { hubs, lake } };
    await expect(resolved(routes, aside)).rejects.toThrow(/quarantine\.to.*must name another sink/);
  });
});
