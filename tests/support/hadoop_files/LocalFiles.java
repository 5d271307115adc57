package org.apache.hadoop.fs.local;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local files by system calls. Without its native library Hadoop starts chmod for each file that it creates,
 * and readlink for both paths of each rename, ten processes for each file of a checkpoint.
 */
public final class LocalFiles {

  /** What FileSystem uses. */
  public static final class Checked extends LocalFileSystem {
    public Checked() {
      super(new Raw());
    }
  }

  /** What FileContext uses. */
  public static final class CheckedContext extends ChecksumFs {
    public CheckedContext(URI address, Configuration settings) throws IOException, URISyntaxException {
      super(new RawContext(settings));
    }
  }

  private static final class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      // Java has no sticky bit.
      if (permission.getStickyBit()) {
        super.setPermission(path, permission);
        return;
      }
      String mode =
          permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL + permission.getOtherAction().SYMBOL;
      Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(mode));
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
      Hold.before(pathToFile(to));
      return super.rename(from, to);
    }

    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
      return Files.isSymbolicLink(pathToFile(path).toPath()) ? super.getFileLinkStatus(path) : getFileStatus(path);
    }
  }

  /** As RawLocalFs, whose constructors are its package's and take no file system. */
  private static final class RawContext extends DelegateToFileSystem {
    RawContext(Configuration settings) throws IOException, URISyntaxException {
      super(FsConstants.LOCAL_FS_URI, new Raw(), settings, FsConstants.LOCAL_FS_URI.getScheme(), false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }

    @Override
    public FsServerDefaults getServerDefaults(Path path) throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    public FsServerDefaults getServerDefaults() throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    public boolean isValidName(String name) {
      return true;
    }
  }

  private LocalFiles() {}
}
