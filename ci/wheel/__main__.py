from ptbuild import main

main()
