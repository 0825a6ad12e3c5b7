import { connectionStringOf, containerAt, launchAzurite } from '../azurite.ts';
import type { Emulator } from './emulators.ts';
import { shared } from '../server.ts';

export async function startAzureBlob(): Promise<Emulator> {
  const { url, stop } = await shared('azurite', launchAzurite);
  return {
    url,
    settings: (endpoint = url) => ({ azblob: { connectionString: connectionStringOf(endpoint) } }),
    bucket: async (name) => {
      await containerAt(url, name);
      return `azblob://${name}`;
    },
    stop,
  };
}
