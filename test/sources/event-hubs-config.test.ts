import { describe, expect, it } from 'vitest';
import { parseOptions } from '../../src/sources/event-hubs/source.ts';
import { resolveText } from '../../src/config/load.ts';
import { BASE } from '../config/helpers.ts';

const HUB = {
  connectionString: 'Endpoint=sb://acme.example/;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0',
  hub: 'events',
};
const KEY = 'DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=aHVudGVyMg==';
const ACCOUNT = 'https://acme.blob.core.windows.net';

const checkpointsOf = (checkpoints: unknown): unknown => parseOptions({ ...HUB, checkpoints }).checkpoints;
const blobs = (options: object): object => ({ type: 'blob-storage', container: 'checkpoints', ...options });

const stateless = (checkpoints: string): string =>
  `acknowledge: delivered\nsources: { hub: { type: event-hubs, connectionString: "${HUB.connectionString}", hub: events, checkpoints: ${checkpoints} } }${BASE}`;

const FROM = { file: 'c.yaml', env: {} };

describe('checkpoints of an event-hubs source', () => {
  it('lie in the journal unless a container is named', () => {
    expect(parseOptions(HUB).checkpoints).toEqual({ type: 'journal' });
    expect(checkpointsOf('journal')).toEqual({ type: 'journal' });
    expect(checkpointsOf(blobs({ connectionString: KEY }))).toEqual({
      type: 'blob-storage',
      storage: { by: 'key', connectionString: KEY },
      container: 'checkpoints',
      takeOverAfter: 60_000,
    });
    expect(checkpointsOf(blobs({ accountUrl: `${ACCOUNT}/`, takeOverAfter: '30s' }))).toEqual({
      type: 'blob-storage',
      storage: { by: 'identity', address: ACCOUNT, clientId: null },
      container: 'checkpoints',
      takeOverAfter: 30_000,
    });
  });

  it.each([
    ['blobs', /^checkpoints\.type: /],
    [{ type: 'blob-storage', connectionString: KEY }, /^checkpoints\.container: /],
    [blobs({}), /^checkpoints\.connectionString: must be set, or accountUrl/],
    [
      blobs({ connectionString: KEY, accountUrl: ACCOUNT }),
      /^checkpoints\.connectionString: must be left out/,
    ],
    [blobs({ connectionString: 'AccountKey=aHVudGVyMg==' }), /^checkpoints\.connectionString: must hold/],
    [blobs({ accountUrl: 'http://acme.example' }), /^checkpoints\.accountUrl: /],
    [blobs({ connectionString: KEY, container: 'No' }), /^checkpoints\.container: /],
    [blobs({ connectionString: KEY, takeOverAfter: '10ms' }), /^checkpoints\.takeOverAfter: /],
    [blobs({ connectionString: KEY, managedIdentityClientId: 'a' }), /ClientId: needs accountUrl/],
    [{ type: 'journal', container: 'checkpoints' }, /^checkpoints: .*container/],
  ])('does not take %j', (checkpoints, message) => {
    expect(() => checkpointsOf(checkpoints)).toThrow(message);
    expect(() => checkpointsOf(checkpoints)).not.toThrow(/aHVudGVyMg/);
  });

  it('must lie outside where there is no journal', async () => {
    for (const journal of ['journal', '{ type: journal }'])
      await expect(resolveText(stateless(journal), FROM)).rejects.toThrow('needs acknowledge: journaled');
    const outside = await resolveText(
      stateless(`{ type: blob-storage, container: checkpoints, accountUrl: "${ACCOUNT}" }`),
      FROM,
    );
    expect(outside.config.acknowledge).toBe('delivered');
  });
});
