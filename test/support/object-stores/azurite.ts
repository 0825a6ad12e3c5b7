import { connectionStringOf, launchAzurite } from '../azurite.ts';
import type { Emulator } from './emulators.ts';

export async function startAzureBlob(): Promise<Emulator> {
  const azurite = await launchAzurite();
  return {
    url: azurite.endpoint,
    settings: (endpoint = azurite.endpoint) => ({
      azblob: { connectionString: connectionStringOf(endpoint) },
    }),
    bucket: async (name) => {
      await azurite.container(name);
      return `azblob://${name}`;
    },
    stop: azurite.stop,
  };
}
